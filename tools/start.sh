#!/bin/sh
# npm start: readies the machine and runs the gateway, with everything it needs.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node gateway/main.ts "$@"
