#!/bin/sh
# npm run leak-check: waves of sessions, mistakes, disconnects and kills, after which nothing may be left and memory be
# flat. `npm run test-long` runs a small one; this has 10 waves of 35 sessions, or as many as the arguments say.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
LEAK_CHECK_WAVES=${1:-10} LEAK_CHECK_SESSIONS=${2:-35} exec vitest run test/chaos/leak-check.long.test.ts
