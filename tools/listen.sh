#!/bin/sh
# npm run listen -- --forward <address>: forwards an account's events to a program on this machine, signed as webhooks are.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/listen.ts "$@"
