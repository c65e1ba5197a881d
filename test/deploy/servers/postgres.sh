# Like the public image: creates the database of POSTGRES_USER with POSTGRES_PASSWORD at the first start.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust >/dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "create database \"$POSTGRES_USER\"" | postgres --single -j postgres >/dev/null
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
