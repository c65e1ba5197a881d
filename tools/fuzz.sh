#!/bin/sh
# npm run fuzz: sends every door of a service each kind of message at its bounds, and prints what they cost.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node tools/bench/fuzz/main.ts "$@"
