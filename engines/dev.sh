#!/usr/bin/env bash
# Runs all of Proa on this machine for development: the engines, then our own processes ("parts").
#
#   engines/dev.sh up      build and start what is not running or has changed; writes .run/env
#   engines/dev.sh down    stop everything; what it stored stays
#   engines/dev.sh status  say what runs; exits 3 when a part does not
#   engines/dev.sh clean   stop everything and delete what it stored
#
# PROA_RUN (.run) holds secrets, logs, pid files and the file env; PROA_STATE holds PostgreSQL's data,
# and Postfix's stands beside it.
set -euo pipefail
umask 077 # nearly everything written here is a secret

root=$(realpath "$(dirname "$0")/..")
run=$(realpath -m "${PROA_RUN:-$root/.run}")
postgres=$root/engines/postgres/run.sh
postfix=$root/engines/postfix/run.sh
parts=(auth notify pgbroker api controller ssh) # in the order they start
auth_listen=${PROA_AUTH_LISTEN:-127.0.0.1:8081}
auth_metrics=${PROA_AUTH_METRICS_LISTEN:-127.0.0.1:9081}
auth_url=http://$auth_listen
notify_listen=${PROA_NOTIFY_LISTEN:-127.0.0.1:8082}
notify_metrics=${PROA_NOTIFY_METRICS_LISTEN:-127.0.0.1:9082}
notify_url=http://$notify_listen
bounce_listen=${PROA_NOTIFY_BOUNCE_LISTEN:-127.0.0.1:8024}
api_listen=${PROA_API_LISTEN:-127.0.0.1:8080}
api_metrics=${PROA_API_METRICS_LISTEN:-127.0.0.1:9080}
api_url=http://$api_listen
controller_metrics=${PROA_CONTROLLER_METRICS_LISTEN:-127.0.0.1:9083}
ssh_listen=${PROA_SSH_LISTEN:-127.0.0.1:2222}
ssh_metrics=${PROA_SSH_METRICS_LISTEN:-127.0.0.1:9084}
pgbroker_listen=${PROA_PGBROKER_LISTEN:-127.0.0.1:8085}
pgbroker_metrics=${PROA_PGBROKER_METRICS_LISTEN:-127.0.0.1:9085}
pgbroker_url=http://$pgbroker_listen

say() { printf '%s\n' "$*"; }
die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# --- Parts: a pid file holds the pid, the start time of that process, and a fingerprint of what was started.

# started prints when a process started, in ticks since boot, or nothing if it has ended (a zombie has). With the pid it
# names a process for good: the pid alone may be another's by now.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'; }

# part_pid prints the pid of a part, or nothing if it does not run.
part_pid() {
	local pid start _
	read -r pid start _ 2>/dev/null <"$run/pid/$1" || return 0
	[ "$(started "$pid")" != "$start" ] || echo "$pid"
}

# fingerprint covers a command and the content of each file it names: NAME=file, or the program itself.
fingerprint() {
	local word
	for word in "$@"; do
		printf '%s\n' "$word"
		[ ! -f "${word#*=}" ] || sha256sum <"${word#*=}"
	done | sha256sum | cut -c1-16
}

busy() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; }

# part_start NAME ADDRESS [NAME=value...] PROGRAM [ARGUMENT...] starts a part that listens on ADDRESS, with only the
# given environment. It leaves a running part alone unless the command or a file it names has changed.
part_start() {
	local name=$1 address=$2 print pid known
	shift 2
	print=$(fingerprint "$@")
	if [ -n "$(part_pid "$name")" ]; then
		read -r _ _ known <"$run/pid/$name"
		[ "$known" != "$print" ] || return 0
		say "$name has changed: starting it again."
		part_stop "$name"
	fi
	! busy "$address" || die "$name cannot start: something else listens on $address. Stop that, or choose another address with PROA_${name^^}_LISTEN."
	mkdir -p "$run/log" "$run/pid"
	[ ! -e "$run/log/$name.log" ] || mv "$run/log/$name.log" "$run/log/$name.log.1"
	(
		cd "$run"
		exec 9>&- # the part must not keep our lock
		exec setsid env -i PATH="$PATH" HOME="${HOME:-/}" LC_ALL=C.UTF-8 "$@" >"$run/log/$name.log" 2>&1 </dev/null
	) &
	pid=$!
	echo "$pid $(started "$pid") $print" >"$run/pid/$name"
}

# part_ready NAME URL waits until the part answers 200.
part_ready() {
	local name=$1 url=$2 since=$SECONDS said=0
	until curl -fsS --noproxy '*' -m 2 -o /dev/null "$url" 2>/dev/null; do
		if [ -z "$(part_pid "$name")" ]; then
			part_fails "$name" "$name ended before it was ready."
		elif [ $((SECONDS - since)) -ge 60 ]; then
			part_fails "$name" "$name was not ready within 60 seconds."
		elif [ $((SECONDS - since)) -ge $((said + 5)) ]; then
			said=$((SECONDS - since))
			say "Waiting for $name, $said seconds so far."
		fi
		sleep 0.1
	done
}

part_fails() {
	tail -n 20 "$run/log/$1.log" >&2 || true
	die "$2 Its last words are above; the whole log is $run/log/$1.log. Mend the cause, then run make up again."
}

part_stop() {
	local pid _
	pid=$(part_pid "$1")
	if [ -n "$pid" ]; then
		kill -TERM "$pid" 2>/dev/null || true
		for _ in {1..200}; do
			[ -n "$(part_pid "$1")" ] || break
			sleep 0.1
		done
		if [ -n "$(part_pid "$1")" ]; then
			say "$1 did not stop within 20 seconds: ending it."
			kill -KILL "$pid" 2>/dev/null || true
			while [ -n "$(part_pid "$1")" ]; do sleep 0.1; done
		fi
		say "$1 stopped."
	fi
	rm -f "$run/pid/$1"
}

part_status() {
	local pid
	pid=$(part_pid "$1")
	if [ -z "$pid" ]; then
		say "$1 is not running."
		return 3
	fi
	say "$1 runs, pid $pid, log in $run/log/$1.log."
}

# --- Files that are either absent or whole.

# keep FILE stores standard input, and touches nothing if FILE holds that already.
keep() {
	local new
	new=$(mktemp "$1.XXXXXX")
	cat >"$new"
	if cmp -s "$new" "$1"; then rm "$new"; else mv "$new" "$1"; fi
}

random() { od -An -N18 -tx1 /dev/urandom | tr -d ' \n'; }

# secret NAME COMMAND... stores what the command prints, the first time only.
secret() {
	local file=$run/secrets/$1 value
	shift
	[ ! -s "$file" ] || return 0
	value=$("$@")
	keep "$file" <<<"$value"
}

lock() {
	mkdir -p "$run"
	exec 9>"$run/lock"
	flock -w 120 9 || die "Another make up or make down has been running for two minutes. Wait for it, then run this again."
}

# --- Commands.

# with_platform tells whether the engines of the platform are there: building them takes a while, and those who only
# want to send notifications need not wait.
with_platform() {
	if [ -z "${platform:-}" ]; then
		platform=no
		if [ "$(id -u)" = 0 ] && "$root/engines/build.sh" find >/dev/null 2>&1; then platform=yes; fi
	fi
	[ "$platform" = yes ]
}

# with_mail tells whether a part of ours sends mail, and so needs Postfix.
with_mail() { [[ " ${parts[*]} " == *" notify "* ]]; }

up_postfix() { ! with_mail || "$postfix" start dev "$bounce_listen"; }

status_postfix() { ! with_mail || "$postfix" status dev; }

up_auth() {
	local secrets=$run/secrets
	(umask 022 && cd "$root" && go build -buildvcs=false -o bin/auth ./cmd/auth 9>&-) || die "auth does not build. Mend what the compiler says above, then run make up again."
	if [ ! -s "$secrets/keyset" ] && "$postgres" exists dev proa_auth; then
		die "The database proa_auth exists, but the keyset that opens its secrets ($secrets/keyset) is gone. Put it back, or start afresh: make clean up"
	fi
	mkdir -p "$secrets"
	secret keyset "$root/bin/auth" keyset new
	secret admin-password random
	secret ssh-client-secret random
	secret notify-client-secret random
	secret api-client-secret random
	"$postgres" create dev proa_auth
	"$postgres" url dev proa_auth | keep "$secrets/auth-database-url"

	part_start auth "$auth_listen" \
		PROA_AUTH_LISTEN="$auth_listen" \
		PROA_AUTH_METRICS_LISTEN="$auth_metrics" \
		PROA_AUTH_URL="$auth_url" \
		PROA_AUTH_TRUSTED_PROXIES=127.0.0.1/32 \
		PROA_AUTH_DATABASE_URL_FILE="$secrets/auth-database-url" \
		PROA_AUTH_KEYSET_FILE="$secrets/keyset" \
		PROA_AUTH_START_FILE="$root/deploy/auth/start.yaml" \
		PROA_ADMIN_USERNAME=admin \
		PROA_ADMIN_PASSWORD_FILE="$secrets/admin-password" \
		PROA_SSH_CLIENT_SECRET_FILE="$secrets/ssh-client-secret" \
		PROA_NOTIFY_CLIENT_SECRET_FILE="$secrets/notify-client-secret" \
		PROA_API_CLIENT_SECRET_FILE="$secrets/api-client-secret" \
		"$root/bin/auth"
	part_ready auth "$auth_url/readyz"
}

up_notify() {
	local secrets=$run/secrets reach=()
	! with_platform || reach=(PROA_NOTIFY_PLATFORM_URL="$api_url") # who is in a space or an organization
	(umask 022 && cd "$root" && go build -buildvcs=false -o bin/notify ./cmd/notify 9>&-) || die "notify does not build. Mend what the compiler says above, then run make up again."
	secret notify-keyset "$root/bin/auth" keyset new
	secret bounce-key random
	"$postgres" create dev proa_notify
	"$postgres" url dev proa_notify | keep "$secrets/notify-database-url"

	part_start notify "$notify_listen" \
		PROA_NOTIFY_LISTEN="$notify_listen" \
		PROA_NOTIFY_METRICS_LISTEN="$notify_metrics" \
		PROA_NOTIFY_URL="$notify_url" \
		PROA_NOTIFY_DATABASE_URL_FILE="$secrets/notify-database-url" \
		PROA_NOTIFY_KEYSET_FILE="$secrets/notify-keyset" \
		PROA_AUTH_URL="$auth_url" \
		PROA_NOTIFY_CLIENT_SECRET_FILE="$secrets/notify-client-secret" \
		PROA_NOTIFY_RELAYS="smtp://$("$postfix" address dev)?tls=none" \
		PROA_NOTIFY_FROM='Proa <notifications@proa.localhost>' \
		PROA_NOTIFY_DOMAIN=proa.localhost \
		PROA_NOTIFY_BOUNCE_LISTEN="$bounce_listen" \
		PROA_NOTIFY_BOUNCE_DOMAIN=bounces.proa.localhost \
		PROA_NOTIFY_BOUNCE_KEY_FILE="$secrets/bounce-key" \
		"${reach[@]}" \
		"$root/bin/notify"
	part_ready notify "$notify_url/readyz"
}

build() { # PROGRAM [NAME=value...]
	local program=$1 name=$1
	case $program in ssh | sftp) name=proa-$program ;; esac # bin/ comes first on the PATH of .run/env, and there are others of these names
	shift
	(umask 022 && cd "$root" && env "$@" go build -buildvcs=false -o "bin/$name" "./cmd/$program" 9>&-) ||
		die "$program does not build. Mend what the compiler says above, then run make up again."
}

cluster() { (umask 022 && cd "$root" && go build -buildvcs=false -o bin/cluster ./engines/cluster && bin/cluster "$@" 9>&-); }

# up_services runs the PostgreSQL whose databases apps get, and prepares it for the broker as docs/pgbroker.md tells operators to. It has an
# address of its own on the cluster's bridge: at the host's are the API server and the registry, which apps must not reach.
up_services() {
	local host=${PROA_REGISTRY%:*} net
	net=${host#10.}
	net=${net%%.*}
	services=10.$net.0.2
	ip address replace "$services/32" dev "proa$net"
	"$postgres" start services "$services" "10.$net.0.0/17"
	secret services-password random
	"$postgres" sql services <<-END
		select 'create role pgbroker' where not exists (select from pg_roles where rolname = 'pgbroker') \gexec
		alter role pgbroker login createdb createrole password '$(cat "$run/secrets/services-password")';
		grant set on parameter temp_file_limit to pgbroker;
		revoke connect, temporary on database postgres, template1 from public;
		grant connect on database postgres to pgbroker;
	END
}

up_pgbroker() {
	local secrets=$run/secrets at
	build pgbroker
	secret pgbroker-keyset "$root/bin/auth" keyset new
	secret pgbroker-password random
	"$postgres" create dev proa_pgbroker
	"$postgres" url dev proa_pgbroker | keep "$secrets/pgbroker-database-url"
	at=$("$postgres" url services)
	at=${at#*@}
	keep "$secrets/pgbroker-server-url" <<<"postgres://pgbroker:$(cat "$secrets/services-password")@$at"
	at=${at%%/*}

	part_start pgbroker "$pgbroker_listen" \
		PROA_PGBROKER_LISTEN="$pgbroker_listen" \
		PROA_PGBROKER_METRICS_LISTEN="$pgbroker_metrics" \
		PROA_PGBROKER_PASSWORD_FILE="$secrets/pgbroker-password" \
		PROA_PGBROKER_DATABASE_URL_FILE="$secrets/pgbroker-database-url" \
		PROA_PGBROKER_KEYSET_FILE="$secrets/pgbroker-keyset" \
		PROA_PGBROKER_SERVER_URL_FILE="$secrets/pgbroker-server-url" \
		PROA_PGBROKER_HOST="$services" \
		PROA_PGBROKER_PORT="${at##*:}" \
		PROA_PGBROKER_SSLMODE=disable \
		"$root/bin/pgbroker"
	part_ready pgbroker "$pgbroker_url/readyz"
}

up_platform() {
	local secrets=$run/secrets host host_key services
	cluster up || die "The cluster is not up. Mend what is said above, then run make up again."
	# shellcheck source=/dev/null
	. "$run/cluster.env"
	up_services
	up_pgbroker
	build api
	build controller
	build launcher CGO_ENABLED=0
	build sftp CGO_ENABLED=0
	build ssh
	host=${PROA_REGISTRY%:*}
	secret api-keyset "$root/bin/auth" keyset new
	secret ssh-host-key "$root/bin/proa-ssh" key
	host_key=$(PROA_SSH_HOST_KEY_FILE="$secrets/ssh-host-key" "$root/bin/proa-ssh" fingerprint)
	keep "$secrets/registry-password" <<<"$PROA_REGISTRY_PASSWORD"
	"$postgres" create dev proa_platform
	"$postgres" url dev proa_platform | keep "$secrets/platform-database-url"

	part_start api "$api_listen" \
		PROA_API_LISTEN="$api_listen" \
		PROA_API_METRICS_LISTEN="$api_metrics" \
		PROA_API_URL="$api_url" \
		PROA_API_DATABASE_URL_FILE="$secrets/platform-database-url" \
		PROA_API_KEYSET_FILE="$secrets/api-keyset" \
		PROA_AUTH_URL="$auth_url" \
		PROA_API_CLIENT_SECRET_FILE="$secrets/api-client-secret" \
		PROA_APPS_DOMAIN="$PROA_APPS_DOMAIN" \
		PROA_APPS_URL="http://$PROA_APPS_DOMAIN:${PROA_GATEWAY_HTTP##*:}" \
		PROA_NOTIFY_URL="$notify_url" \
		PROA_TCP_DOMAIN="${PROA_TCP_DOMAIN:-}" \
		PROA_TCP_PORTS="${PROA_TCP_PORTS:-}" \
		PROA_SSH_ADDRESS="$ssh_listen" \
		PROA_SSH_FINGERPRINT="$host_key" \
		KUBECONFIG="$KUBECONFIG" \
		PROA_REGISTRY="$PROA_REGISTRY" \
		PROA_REGISTRY_USERNAME="$PROA_REGISTRY_USERNAME" \
		PROA_REGISTRY_PASSWORD_FILE="$secrets/registry-password" \
		PROA_REGISTRY_CA_FILE="$PROA_REGISTRY_CA_FILE" \
		"$root/bin/api"
	part_start controller "$controller_metrics" \
		PROA_CONTROLLER_METRICS_LISTEN="$controller_metrics" \
		PROA_CONTROLLER_DATABASE_URL_FILE="$secrets/platform-database-url" \
		PROA_CONTROLLER_KEYSET_FILE="$secrets/api-keyset" \
		KUBECONFIG="$KUBECONFIG" \
		PROA_REGISTRY="$PROA_REGISTRY" \
		PROA_REGISTRY_USERNAME="$PROA_REGISTRY_USERNAME" \
		PROA_REGISTRY_PASSWORD_FILE="$secrets/registry-password" \
		PROA_REGISTRY_CA_FILE="$PROA_REGISTRY_CA_FILE" \
		PROA_LAUNCHER_FILE="$root/bin/launcher" \
		PROA_SFTP_FILE="$root/bin/proa-sftp" \
		PROA_GATEWAY_CIDRS="$host/32" \
		PROA_ALLOWED_CIDRS="$services/32" \
		PROA_TCP_GATEWAY="${PROA_TCP_GATEWAY:-}" \
		"$root/bin/controller"
	part_start ssh "$ssh_listen" \
		PROA_SSH_LISTEN="$ssh_listen" \
		PROA_SSH_METRICS_LISTEN="$ssh_metrics" \
		PROA_SSH_HOST_KEY_FILE="$secrets/ssh-host-key" \
		PROA_SSH_DATABASE_URL_FILE="$secrets/platform-database-url" \
		PROA_AUTH_URL="$auth_url" \
		PROA_SSH_CLIENT_SECRET_FILE="$secrets/ssh-client-secret" \
		KUBECONFIG="$KUBECONFIG" \
		"$root/bin/proa-ssh"
	part_ready api "$api_url/readyz"
	part_ready controller "http://$controller_metrics/readyz"
	part_ready ssh "http://$ssh_metrics/readyz"
	register_pgbroker >"$run/log/register.log" 2>&1 || die "The service broker could not be registered: $(tail -n 5 "$run/log/register.log") Mend that, then run make up again."
}

# register_pgbroker makes the broker known to the platform and its plans to everybody, as an operator does.
register_pgbroker() (
	PROA_PASSWORD=$(cat "$run/secrets/admin-password")
	PROA_BROKER_PASSWORD=$(cat "$run/secrets/pgbroker-password")
	export PROA_HOME=$run/operator PROA_USERNAME=admin PROA_PASSWORD PROA_BROKER_PASSWORD
	proa=$root/bin/proa
	"$proa" login -a "$api_url"
	"$proa" create-service-broker postgres platform "$pgbroker_url" --update-if-exists
	"$proa" enable-service-access postgres
)

write_env() {
	{
		cat <<-END
			export PROA_AUTH_URL='$auth_url'
			export PROA_ADMIN_USERNAME='admin'
			export PROA_ADMIN_PASSWORD='$(cat "$run/secrets/admin-password")'
		END
		echo "export PROA_NOTIFY_URL='$notify_url'"
		! with_mail || echo "export PROA_MAIL_DIR='$("$postfix" mail dev)'"
		! with_platform || {
			echo "export PROA_API_URL='$api_url'"
			echo "export PROA_GATEWAY_URL='http://$PROA_GATEWAY_HTTP'"
			echo "export PROA_SSH_ADDR='$ssh_listen'"
			echo "export PROA_PGBROKER_URL='$pgbroker_url'"
			echo "export PROA_PGBROKER_USERNAME='platform'"
			echo "export PROA_PGBROKER_PASSWORD='$(cat "$run/secrets/pgbroker-password")'"
			cat "$run/cluster.env"
		}
		echo "export PROA_LOG_DIR='$run/log'"
		echo "PATH='$root/bin':\$PATH"
	} | keep "$run/env"
}

platform_line() {
	if with_platform; then
		echo "  platform              $api_url, with apps at http://NAME.$PROA_APPS_DOMAIN${PROA_TCP_DOMAIN:+ and $PROA_TCP_DOMAIN:$PROA_TCP_PORTS}"
	else
		echo "  platform              left out, because its engines are not built. Build them once, as root: make engines"
	fi
}

# next_step logs in where there is a platform, and else asks for a token.
next_step() {
	if with_platform; then
		echo "  proa login -a \"\$PROA_API_URL\" -u \"\$PROA_ADMIN_USERNAME\" -p \"\$PROA_ADMIN_PASSWORD\""
	else
		echo "  curl -u cf: -d grant_type=password -d username=\"\$PROA_ADMIN_USERNAME\" -d password=\"\$PROA_ADMIN_PASSWORD\" \"\$PROA_AUTH_URL/oauth/token\""
	fi
}

up() {
	local tool
	for tool in go curl; do
		command -v "$tool" >/dev/null || die "$tool is not on the PATH. Install it, then run make up again."
	done
	lock
	"$postgres" start dev
	up_postfix
	up_auth
	up_notify
	build proa
	if with_platform; then up_platform; else parts=(auth notify); fi
	write_env
	cat <<-END

		Proa is up.
		  authorization server  $auth_url
		  notification service  $notify_url
		  mail it has sent      $("$postfix" mail dev)
		  metrics               http://$auth_metrics/metrics and http://$notify_metrics/metrics
		  logs                  $run/log
		$(platform_line)

		Take the addresses and the administrator's password into your shell, and log in:
		  . ${run/#"$root/"/}/env
		$(next_step)

		make status says what runs; make down stops it.
	END
}

down() {
	local i
	if [ -d "$run" ]; then
		lock
		for ((i = ${#parts[@]} - 1; i >= 0; i--)); do part_stop "${parts[i]}"; done
		rm -f "$run/env"
	fi
	[ "$(id -u)" != 0 ] || [ ! -x "$root/bin/cluster" ] || (cd "$root" && bin/cluster down)
	"$postgres" stop
	"$postfix" stop
	say "Nothing of Proa is running."
}

status() {
	local part result=0
	"$postgres" status dev || result=$?
	status_postfix || result=$?
	if with_platform; then "$postgres" status services || result=$?; else parts=(auth notify); fi
	for part in "${parts[@]}"; do part_status "$part" || result=$?; done
	return "$result"
}

clean() {
	down
	"$postgres" destroy
	"$postfix" destroy
	rm -rf "$run"
}

case ${1:-} in
up | down | status | clean) "$1" ;;
*)
	sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
	exit 2
	;;
esac
