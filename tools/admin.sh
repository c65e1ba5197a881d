#!/bin/sh
# npm run admin -- <command>: what an operator does that has no endpoint, such as making the first key.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/admin.ts "$@"
