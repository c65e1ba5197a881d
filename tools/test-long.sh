#!/bin/sh
# npm run test-long: the tests of ends and outages at their whole size, which the suite has no time for; with names of
# files, those alone.
exec sh "$(dirname "$0")/test.sh" long "$@"
