# Sourced by the other scripts: how they tell what they do, and how they wait.

rshim=/sys/devices/platform/MLNXBF04:00
[ ! -e "$rshim/driver/rsh_log" ] || rshim=$rshim/driver

# say TEXT, in the journal and in the log that the host reads through rshim.
say() {
	echo "$*"
	[ ! -e "$rshim/rsh_log" ] || echo "$*" >"$rshim/rsh_log"
}

# complain REASON TEXT; DPF shows both as the DPU's condition InstallError.
complain() {
	say "ERROR: $2"
	/usr/local/bin/host-agent.sh error "$1" "$2"
}

# fail REASON TEXT ends the script, too.
fail() {
	complain "$@"
	exit 1
}

# wait_for SECONDS PAUSE WHAT COMMAND... repeats a command until it succeeds.
wait_for() {
	local end=$((SECONDS + $1)) pause=$2
	say "Waiting for $3"
	until "${@:4}"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep "$pause"
	done
}
