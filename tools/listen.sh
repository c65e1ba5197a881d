#!/bin/sh
# npm run listen -- --forward <url>: forwards an account's events to a local program, signed as webhooks.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/listen.ts "$@"
