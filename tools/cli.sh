#!/bin/sh
# npm run cli -- <command>: the command line of sdk/cli. `npm run agent` and `npm run listen` are two of its commands.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
exec node sdk/cli/src/main.ts "$@"
