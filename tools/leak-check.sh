#!/bin/sh
# npm run leak-check: runs waves of sessions, mistakes, disconnects and kills, and checks for leaks and flat memory.
# `npm run test-long` runs a small leak check. Default: 10 waves of 35 sessions; the arguments are the two numbers.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
LEAK_CHECK_WAVES=${1:-10} LEAK_CHECK_SESSIONS=${2:-35} exec vitest run test/chaos/leak-check.long.test.ts
