#!/bin/sh
# npm run test-long: the tests of ends and outages at their whole size, which the suite has no time for.
cd "$(dirname "$0")"
LONG_TESTS=1 exec sh ./test.sh .long.test.ts "$@"
