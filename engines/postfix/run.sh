#!/usr/bin/env bash
# Runs Postfix for this checkout: named instances, each with its own settings, queue, port and Maildir, on loopback only.
# /etc/postfix is not read and not written.
#
#   engines/postfix/run.sh install                 install Postfix where root may, without starting anything
#   engines/postfix/run.sh start NAME [HOST:PORT]  start it; bounces go to HOST:PORT over LMTP (kept for the next start)
#   engines/postfix/run.sh stop [NAME]             stop it, or all of them
#   engines/postfix/run.sh status [NAME]           say whether it runs; exits 3 when it does not
#   engines/postfix/run.sh address NAME            print HOST:PORT where it takes mail over SMTP
#   engines/postfix/run.sh mail NAME               print the Maildir where all mail lands
#   engines/postfix/run.sh destroy [NAME]          stop it and delete its mail and its queue, or all of them
#
# What happens to a mail, by its recipient:
#   …@bounces.proa.localhost                       over LMTP to HOST:PORT, or into the Maildir while none was given
#   bounce@…, nobody-…@…                           accepted, then refused by a second hop (550 5.1.1): the sender gets a
#                                                  delivery status notification
#   later-…@…                                      accepted, then put off by the second hop (450 4.2.1) until it expires
#   example.org/.com/.net and below,               into the Maildir
#   .localhost, .test, .example
#   anywhere else                                  refused at once (550 5.1.2): nothing leaves this machine
#
# PROA_STATE says where it lives, as for PostgreSQL, with -postfix behind it: Postfix works under several users, and none
# of them may enter PostgreSQL's directory.
set -euo pipefail
umask 022

root=$(realpath "$(dirname "$0")/../..")
state=$(realpath -m "${PROA_STATE:-/var/tmp/proa-$(printf %s "$root" | sha256sum | cut -c1-8)}")-postfix
readonly hop=127.0.0.2 # the second hop listens here, on the same port
PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s\n' "$*"; }
die() {
	printf '%s\n' "$*" >&2
	exit 1
}

use() {
	[[ "${1:-}" =~ ^[a-z][a-z0-9-]*$ ]] || die "Say which instance you mean, in lower-case letters: dev, test or bench."
	name=$1
	home=$state/$name
	conf=$home/conf
	queue=$home/queue
}

# quiet runs a command of Postfix with an environment that has nothing of ours, and without our lock.
quiet() (
	exec 9>&-
	cd /
	exec env -i PATH="$PATH" LC_ALL=C "$@" >/dev/null 2>&1 </dev/null
)

port() { cat "$home/port" 2>/dev/null || true; }
bounces() { cat "$home/bounces" 2>/dev/null || true; }
busy() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

# users lists every process that works in the queue: master, its daemons, and what a killed master left behind.
users() { find /proc -maxdepth 2 -name cwd -lname "$queue" 2>/dev/null | cut -d/ -f3 | xargs || true; }

master() { tr -d ' ' 2>/dev/null <"$queue/pid/master.pid" || true; }
running() {
	local pid
	if [ "$(id -u)" != 0 ]; then # only root may look at the processes
		[ -n "$(port)" ] && busy 127.0.0.1 "$(port)"
		return
	fi
	pid=$(master)
	# The pid in a file left by a crash may belong to someone else by now.
	[ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null || true)" = "$queue" ]
}

need_root() { [ "$(id -u)" = 0 ] || die "Postfix has to be started and stopped by root. Run this as root: PROA_STATE=${state%-postfix} engines/postfix/run.sh $*"; }

lock() {
	[ -d "$home" ] || return 0
	exec 9>"$home/lock"
	flock -w 120 9 || die "Another command has been busy with Postfix $name for two minutes. Wait for it, then run this again."
}

install_server() {
	[ ! -x /usr/lib/postfix/sbin/master ] || return 0
	if [ "$(id -u)" = 0 ]; then
		local other
		other=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package} ${Provides}\n' | awk '/^ii/ && /mail-transport-agent/ { print $2 }' | xargs)
		[ -z "$other" ] || die "This machine sends its mail with $other, and Debian's Postfix would replace that. If you agree, run apt-get install postfix, then this again."
		# Debian would also configure Postfix for the whole machine and start it, which nobody here asked for.
		echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections
	fi
	"$root/engines/apt.sh" postfix
}

make_home() {
	if [ -e "$state" ] && [ "$(stat -c %U "$state")" != root ]; then
		die "$state belongs to $(stat -c %U "$state"), but Postfix has to run from a directory of root. Set PROA_STATE to a directory that does not exist yet."
	fi
	# Under sudo the mail belongs to the person, who will want to read it.
	owner=${SUDO_UID:-$(id -u mail)} group=${SUDO_GID:-$(id -g mail)}
	mkdir -p "$state" "$home" "$conf" "$queue"
	[ -d "$home/data" ] || install -d -m 0700 -o postfix -g postfix "$home/data"
	local dir
	for dir in mail mail/tmp mail/new mail/cur; do
		[ -d "$home/$dir" ] || install -d -m 0700 -o "$owner" -g "$group" "$home/$dir"
	done
	for dir in postfix mail; do
		setpriv "--reuid=$dir" "--regid=$dir" --clear-groups test -x "$home" ||
			die "The user $dir cannot enter $home. Set PROA_STATE to a directory whose parents everyone may enter."
	done
}

# choose_port keeps the port of last time unless someone else has taken it.
choose_port() {
	local chosen
	chosen=$(port)
	chosen=${chosen:-$((20000 + RANDOM % 10000))}
	while busy 127.0.0.1 "$chosen" || busy "$hop" "$chosen"; do chosen=$((20000 + RANDOM % 10000)); done
	echo "$chosen" >"$home/port"
}

# keep FILE stores standard input, and sets changed if FILE held something else.
keep() {
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then
		rm "$1.new"
	else
		mv "$1.new" "$1"
		changed=yes
	fi
}

configure() {
	local port bounces
	port=$(port)
	bounces=$(bounces)
	changed=no
	keep "$conf/main.cf" <<-END
		compatibility_level = 3.6
		command_directory = /usr/sbin
		daemon_directory = /usr/lib/postfix/sbin
		queue_directory = $queue
		data_directory = $home/data
		mail_owner = postfix
		setgid_group = postdrop
		maillog_file = $home/log
		maillog_file_prefixes = $home

		# Loopback, and no question to any name server.
		myhostname = mail.proa.localhost
		mydomain = proa.localhost
		inet_interfaces = 127.0.0.1
		inet_protocols = ipv4
		mynetworks = 127.0.0.0/8
		smtpd_peername_lookup = no
		smtp_dns_support_level = disabled
		lmtp_dns_support_level = disabled
		smtp_host_lookup = native
		lmtp_host_lookup = native
		default_transport = error:5.1.2 This Postfix is for development. It sends nothing to other machines

		# Every address of these domains is one Maildir.
		mydestination =
		alias_maps =
		append_dot_mydomain = no
		virtual_mailbox_domains = regexp:$conf/domains
		virtual_mailbox_base = $home
		virtual_mailbox_maps = static:mail/
		virtual_uid_maps = static:$owner
		virtual_gid_maps = static:$group
		virtual_minimum_uid = $owner
		transport_maps = regexp:$conf/transport

		# A bounce that the receiver puts off is tried again soon. Nobody reads letters to the postmaster here.
		queue_run_delay = 5s
		minimal_backoff_time = 5s
		maximal_backoff_time = 60s
		transport_retry_time = 5s
		notify_classes =

		# Much mail in a short time is the usual thing, not an attack.
		default_process_limit = 200
		in_flow_delay = 0s
		virtual_initial_destination_concurrency = 20
		virtual_destination_concurrency_limit = 40
		smtpd_client_connection_count_limit = 0
	END
	keep "$conf/master.cf" <<-END
		127.0.0.1:$port inet n - n - - smtpd
		$hop:$port inet n - n - - smtpd
		    -o myhostname=hop.proa.localhost
		    -o smtpd_recipient_restrictions=check_recipient_access,regexp:$conf/refuse,reject
		cleanup  unix n - n - 0 cleanup
		qmgr     unix n - n 300 1 qmgr
		rewrite  unix - - n - - trivial-rewrite
		bounce   unix - - n - 0 bounce
		defer    unix - - n - 0 bounce
		trace    unix - - n - 0 bounce
		flush    unix n - n 1000? 0 flush
		proxymap unix - - n - - proxymap
		showq    unix n - n - - showq
		error    unix - - n - - error
		retry    unix - - n - - error
		smtp     unix - - n - - smtp
		lmtp     unix - - n - - lmtp
		virtual  unix - n n - - virtual
		anvil    unix - - n - 1 anvil
		scache   unix - - n - 1 scache
		postlog  unix-dgram n - n - 1 postlogd
	END
	keep "$conf/domains" <<-'END'
		/^(.+\.)?example\.(org|com|net)$/ here
		/^(.+\.)?(localhost|test|example)$/ here
	END
	keep "$conf/transport" <<-END
		${bounces:+/@bounces\.proa\.localhost\$/ lmtp:inet:$bounces}
		/^(bounce|nobody-[^@]*|later-[^@]*)@/ smtp:[$hop]:$port
	END
	keep "$conf/refuse" <<-'END'
		/^later-/ 450 4.2.1 The mailbox is busy, try again later
		/^/ 550 5.1.1 User unknown
	END
}

# clear_leftovers makes room after a crash: daemons leave by themselves when their master has gone, or are ended.
clear_leftovers() {
	local signal pid _
	for signal in TERM KILL; do
		for _ in {1..25}; do
			[ -n "$(users)" ] || return 0
			sleep 0.2
		done
		for pid in $(users); do kill -s "$signal" "$pid" 2>/dev/null || true; done
	done
	for _ in {1..25}; do
		[ -n "$(users)" ] || return 0
		sleep 0.2
	done
	die "Processes of Postfix $name do not end: $(users). Look at $home/log, end them, then run this again."
}

start() {
	local bounces=${1:-} _
	[[ "$bounces" =~ ^(127(\.[0-9]+){3}:[0-9]+)?$ ]] || die "Bounces go to an address on loopback, such as 127.0.0.1:8024, not to $bounces."
	if [ "$(id -u)" != 0 ] && running && [ "${bounces:-$(bounces)}" = "$(bounces)" ]; then
		say "Postfix $name already runs on 127.0.0.1:$(port)."
		return
	fi
	need_root "start $name $bounces"
	install_server
	make_home
	lock
	[ -z "$bounces" ] || echo "$bounces" >"$home/bounces"
	if running; then
		configure
		if [ "$changed" = no ]; then
			say "Postfix $name already runs on 127.0.0.1:$(port)."
			return
		fi
		quiet postfix -c "$conf" reload || fails "could not read its new settings"
		say "Postfix $name runs on 127.0.0.1:$(port), with new settings."
		return
	fi
	clear_leftovers
	for _ in {1..5}; do
		choose_port
		configure
		rm -f "$home/log"
		if quiet postfix -c "$conf" start; then
			say "Postfix $name runs on 127.0.0.1:$(port)."
			return
		fi
		# Someone may have taken the port between our look and the start: only then is another try of use.
		grep -q 'Address already in use' "$home/log" 2>/dev/null || break
		rm -f "$home/port"
	done
	fails "did not start"
}

fails() {
	tail -n 20 "$home/log" >&2 || true
	die "Postfix $name $1. Its last words are above; the whole log is $home/log."
}

stop() {
	if [ "$(id -u)" = 0 ]; then lock; fi
	if ! running; then
		say "Postfix $name is not running."
		return
	fi
	need_root "stop $name"
	quiet postfix -c "$conf" stop || true
	clear_leftovers
	say "Postfix $name stopped."
}

status() {
	if ! running; then
		say "Postfix $name is not running."
		return 3
	fi
	say "Postfix $name runs on 127.0.0.1:$(port), mail in $home/mail, log in $home/log."
}

address() {
	running || die "Postfix $name is not running. Start it first: engines/postfix/run.sh start $name"
	say "127.0.0.1:$(port)"
}

mail() { say "$home/mail"; }

destroy() {
	stop
	rm -rf "$home"
	rmdir "$state" 2>/dev/null || true
	say "Deleted the mail and the queue of Postfix $name."
}

# each runs a command for one instance, or for all of them when none is named.
each() {
	local command=$1 one result=0
	shift
	if [ $# -gt 0 ]; then
		use "$1"
		"$command"
		return
	fi
	for one in "$state"/*/; do
		[ -d "$one" ] || continue
		use "$(basename "$one")"
		"$command" || result=$?
	done
	return "$result"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
install) install_server ;;
start | address | mail)
	use "${1:-}"
	shift
	"$command" "$@"
	;;
stop | status | destroy) each "$command" "$@" ;;
*)
	sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
	exit 2
	;;
esac
