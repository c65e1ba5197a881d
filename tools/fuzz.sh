#!/bin/sh
# npm run fuzz: sends each kind of message at its size limits to every transport, and prints their costs.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node tools/bench/fuzz/main.ts "$@"
