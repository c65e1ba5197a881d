#!/bin/sh
# npm run bench: prepares the machine and prints the table of measurements.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node tools/bench/main.ts "$@"
