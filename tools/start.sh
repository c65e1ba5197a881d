#!/bin/sh
# npm start: prepares the machine and runs the service with all its parts.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node gateway/main.ts "$@"
