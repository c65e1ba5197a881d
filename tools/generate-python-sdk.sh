#!/bin/sh
# Generates the types and errors of sdk/python from the OpenAPI document of the code, and its synchronous half from the
# asynchronous one. Needs Python 3.10 or later. The service needs none of this.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
venv=sdk/python/.venv
package=sdk/python/src/pilothouse

if ! cmp -s sdk/python/requirements.txt $venv/.installed-requirements.txt; then
  python3 -m venv --clear $venv
  $venv/bin/pip install --quiet --disable-pip-version-check --requirement sdk/python/requirements.txt
  cp sdk/python/requirements.txt $venv/.installed-requirements.txt
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
node tools/sdk-document.ts python "$work/document.json"
$venv/bin/datamodel-codegen --input "$work/document.json" --input-file-type openapi --output "$work/models.py" \
  --output-model-type typing.TypedDict --target-python-version 3.10 --enum-field-as-literal all --use-union-operator \
  --use-standard-collections --use-schema-description --use-double-quotes --disable-timestamp \
  --use-field-description --formatters builtin
rm -rf $package/_gen $package/_sync
mkdir $package/_gen
mv "$work/models.py" $package/_gen/models.py
$venv/bin/python sdk/python/tools/generate.py "$work/document.json" $package
cp LICENSE sdk/python/LICENSE
