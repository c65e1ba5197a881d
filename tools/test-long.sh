#!/bin/sh
# npm run test-long: the tests of ends and outages at their whole size, which the suite has no time for; with names of
# files, those alone.
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- .long.test.ts
LONG_TESTS=1 exec sh ./test.sh "$@"
