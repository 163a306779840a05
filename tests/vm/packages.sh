# The Debian packages under systemd, on a machine that is head and node: the node starts by itself once the coordinator has made its key, the
# daemons say when they are ready, pods survive what an upgrade does, a daemon that hangs is replaced, and backups are made.
#
# The packages are unpacked, not installed: there is no dpkg in the guest. What their scripts do is done here: users, directories, and units
# that are enabled and started. tests/e2e/packages.py installs them.
as() {  # as USER COMMAND...
  user=$1
  shift
  setpriv --reuid "$user" --regid "$user" --init-groups env HOME="/home/$user" USER="$user" "$@"
}

is() { [ "$1" = "$2" ]; }
state() { systemctl show -P "$2" "muster-$1"; }
active() { is "$(state "$1" ActiveState)" active; }
main_pid() { state "$1" MainPID; }
why() {  # why UNIT: prints its status and log after a failed check
  systemctl status --no-pager -l "muster-$1" | show
  journalctl --no-pager -n 30 -u "muster-$1" | show
}
another() { active "$1" && ! is "$2" "$(main_pid "$1")"; }  # another UNIT PID: its main process is not PID
ran() {  # ran NAME COMMAND...: ada's job of one index; its output is in /tmp/NAME.out
  job=$1
  shift
  as ada muster submit --name "$job" -n 1 -- "$@" >/dev/null && as ada muster wait "job/$job" --timeout 120s >/dev/null
  code=$?
  as ada muster logs "job/$job" > "/tmp/$job.out" 2>&1
  return $code
}

systemd-sysusers && systemd-tmpfiles --create muster-coordinator.conf muster-agent.conf
useradd --create-home --groups users ada
systemctl daemon-reload
systemctl enable -q muster-agent.service
# A node without a key waits, and nothing fails.
check node_waits_for_its_key systemctl enable -q --now muster-keeper.path
check no_agent_without_keeper sh -c '! systemctl -q is-active muster-agent muster-keeper'
check coordinator_starts systemctl enable -q --now muster-coordinator.service muster-backup.timer || why coordinator
# Started means that it serves.
check it_serves_at_once sh -c 'test -S /run/muster/api.sock && muster get nodes >/dev/null' || why coordinator
for unit in keeper agent; do check "${unit}_follows" eventually active $unit || why $unit; done
check node_is_ready eventually sh -c 'muster get nodes | grep -q " Ready "' || why agent
check users is "$(ps -o user= -p "$(main_pid coordinator)" -p "$(main_pid agent)" -p "$(main_pid keeper)" | sort | xargs)" "muster muster-agent root"
check limits_are_enforced eventually sh -c 'muster get nodes -o yaml | grep -q "reason: CgroupControllersAvailable"' || why agent
check first_job ran first id -un || why agent
check as_its_user grep -q ada /tmp/first.out || show /tmp/first.out

# What an upgrade does, while a pod runs.
as ada muster submit --name stays -n 1 -- sh -c 'echo $$; until test -e /tmp/leave; do sleep 0.5; done; echo left' >/dev/null
pid_of() { as ada muster logs job/stays 2>/dev/null | sed 's/.* | //' | grep '^[0-9][0-9]*$'; }
check stays_begins eventually pid_of
pod=$(pid_of)
keeper=$(main_pid keeper) agent=$(main_pid agent) coordinator=$(main_pid coordinator)
check keeper_is_asked systemctl reload muster-keeper
check agent_restarts systemctl try-restart muster-agent || why agent
check coordinator_restarts systemctl restart muster-coordinator || why coordinator
check agent_is_another another agent "$agent"
check coordinator_is_another another coordinator "$coordinator"
check keeper_stays is "$(main_pid keeper)" "$keeper"
check keeper_cannot_be_stopped sh -c '! systemctl stop muster-keeper 2>/dev/null'
check pod_survives is "$(ps -o user= -p "$pod")" ada
# A daemon that hangs is replaced: the watchdog waits for a minute, in the guest's time.
agent=$(main_pid agent)
kill -STOP "$agent"
check agent_that_hangs_is_replaced eventually another agent "$agent" || why agent
check pod_survives_that is "$(ps -o user= -p "$pod")" ada
touch /tmp/leave
check stays_ends as ada muster wait job/stays --timeout 120s
as ada muster logs job/stays > /tmp/stays.out
check its_output_is_complete grep -q left /tmp/stays.out || show /tmp/stays.out
# Now that no pod runs, the keeper is replaced.
keeper=$(main_pid keeper)
systemctl reload muster-keeper
check idle_keeper_is_replaced eventually another keeper "$keeper" || why keeper
check a_job_after_that ran after true || why agent

check backup_is_made systemctl start muster-backup.service || why backup
check there_is_one is "$(find /var/backups/muster -mindepth 1 -maxdepth 1 -name 'muster-*Z' -printf '%u %m\n')" "muster 700" || ls -l /var/backups/muster
check timer_waits systemctl -q is-active muster-backup.timer
check configuration_is_valid muster config check

for unit in coordinator agent keeper backup; do
  echo "    $unit: $(systemd-analyze security --no-pager "muster-$unit" | tail -1)"
done
check agent_stops systemctl stop muster-agent
check agent_stopped_cleanly is "$(state agent Result)" success || why agent
check coordinator_stops systemctl stop muster-coordinator
check coordinator_stopped_cleanly is "$(state coordinator Result)" success || why coordinator
check nothing_failed is "$(systemctl list-units --failed --no-legend 'muster*')" ""
