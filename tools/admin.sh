#!/bin/sh
# npm run admin -- <command>: operator commands without an endpoint, such as creating the first key.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/admin.ts "$@"
