#!/bin/sh
# Makes a log for cairnlog@NAME.service: its user, its operator key and its settings. As root, once for each log:
#   new-log.sh NAME https://NAME.example.org        a log that is known by its host name
#   new-log.sh NAME https://logs.example.org/NAME   a log that is known by its path
# It prints the public operator key, and what to do next. With ROOT=DIR all is made below DIR, and no user.
set -eu
umask 077

fail() {
  echo "new-log.sh: $1" >&2
  exit 1
}

name=${1-} url=${2-} root=${ROOT-}
# A user has at most 32 characters, and `cairnlog-` nine of them.
echo "$name" | grep -Eqx '[a-z][a-z0-9-]{0,22}' || fail "NAME is up to 23 of a-z, 0-9 and -, and begins with a letter."
echo "$url" | grep -Eqx "https://[a-z0-9.-]+(/$name)?" || fail "The address is https://HOST or https://HOST/$name."
settings=$root/etc/cairnlog/$name.env data=$root/var/lib/cairnlog/$name
for path in "$settings" "$data"; do
  [ ! -e "$path" ] || fail "There is $path already; nothing was changed."
done

# A single log closes its directory to other users at each start.
[ ! -e "$root/var/lib/cairnlog/log/data.mdb" ] ||
  fail "$root/var/lib/cairnlog is the data directory of a single log: move it to a folder of its own in there first."

port=8101
while grep -qsx "PORT=$port" "$root"/etc/cairnlog/*.env; do port=$((port + 1)); done

install -d -m 755 "$root/etc/cairnlog" "$root/var/lib/cairnlog"
install -d -m 700 "$data"
openssl genpkey -algorithm ed25519 -out "$data/operator.pem"
if [ -z "$root" ]; then
  useradd --system --user-group --no-create-home --home-dir "$data" "cairnlog-$name"
  chown -R "cairnlog-$name:cairnlog-$name" "$data"
fi

address=${url#https://}
# A log that others may tell from its neighbours keeps its name for ever. An idle log needs no thread that serves.
cat > "$settings" <<SETTINGS
PORT=$port
SERVICE_PUBLIC_URL=https://${address%%/*}
SERVICE_LOG_NAME=$address
SERVICE_TLOG_ORIGIN=$address/tlog
SERVICE_TRUSTED_PROXIES=127.0.0.1
SERVICE_FRONT_ENDS=0
SERVICE_WORKERS=1
SETTINGS

openssl pkey -in "$data/operator.pem" -pubout
echo "Let the proxy send $url to 127.0.0.1:$port, then: systemctl enable --now cairnlog@$name" >&2
