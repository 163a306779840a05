# The units of docs/users.md under systemd: they start, pods run as their owners and survive restarts of the daemons, limits that PAM
# raises apply to pods, audited requests reach the journal, and everything stops cleanly.
as() {  # as USER COMMAND...
  user=$1
  shift
  setpriv --reuid "$user" --regid "$user" --init-groups env HOME="/home/$user" USER="$user" "$@"
}

job() {  # job USER NAME COMMAND: creates a job
  { job_head "$2"; cat <<Y; } > "/tmp/$2.yaml"
        command: ["sh", "-c"]
        args:
        - |
$(printf '%s\n' "$3" | sed 's/^/          /')
Y
  chmod 644 "/tmp/$2.yaml"
  as "$1" muster create -f "/tmp/$2.yaml"
}

ran() {  # ran USER NAME COMMAND: runs a job to its end; the output is in /tmp/NAME.out
  job "$1" "$2" "$3" >/dev/null && as "$1" muster wait "job/$2" --timeout 120s >/dev/null
  code=$?
  as "$1" muster logs "job/$2" > "/tmp/$2.out" 2>&1
  return $code
}

has() { grep -q -- "$1" "$2"; }
is() { [ "$1" = "$2" ]; }
state() { systemctl show -P "$2" "muster-$1"; }
active() { is "$(state "$1" ActiveState)" active; }
main_pid() { state "$1" MainPID; }

started_again() {  # started_again DAEMON: restarts it with systemctl; it must be a new process
  before=$(main_pid "$1")
  systemctl restart "muster-$1" && active "$1" && ! is "$before" "$(main_pid "$1")"
}

renewed() { active keeper && ! is "$1" "$(main_pid keeper)"; }
keeper_again() {  # no pod is running, so it exits and systemd restarts it
  before=$(main_pid keeper)
  . /muster/doc/again.sh && eventually renewed "$before"
}
stays() { journalctl -q -u muster-keeper -o cat | grep -q SIGTERM || grep -q SIGTERM /var/lib/muster-agent/work/keeper/keeper.log; }

node_ready() { muster get nodes | grep -q '^n1 *Ready'; }
why() {  # why DAEMON: prints its status and log after a failed check
  systemctl status --no-pager -l "muster-$1" | show
  journalctl --no-pager -n 30 -u "muster-$1" | show
}

. /muster/doc/once.sh
for user in ada bob; do useradd --create-home --groups users "$user"; done
. /muster/doc/start.sh
eventually test -s /var/lib/muster/data/permit.pub || why coordinator
. /muster/doc/keeper.sh
eventually node_ready || why agent
for unit in coordinator agent keeper; do check "p12_${unit}_runs" active $unit || why $unit; done
check p12_keeper_is_root is "$(ps -o user= -p "$(main_pid keeper)")" root
check p12_agent_is_not is "$(ps -o user= -p "$(main_pid agent)")" muster-agent
check p12_agent_is_not_the_coordinator is "$(ps -o user= -p "$(main_pid coordinator)")" muster
check p12_agent_cannot_read_the_keys sh -c '! setpriv --reuid muster-agent --regid muster-agent --clear-groups ls /var/lib/muster/data 2>/dev/null'

check p18_limits_are_enforced eventually sh -c "muster get nodes n1 -o yaml | grep -q 'reason: CgroupControllersAvailable'" || why agent
check p12_job_of_ada ran ada who 'id -u; id -g; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status'
check p12_runs_as_her is "$(head -2 /tmp/who.out | xargs)" "$(id -u ada) $(id -g ada)" || show /tmp/who.out
check p12_without_capabilities has 'CapEff:[^1-9a-f]*$' /tmp/who.out || show /tmp/who.out
check p12_without_new_privileges has 'NoNewPrivs:[^0-9]*1' /tmp/who.out
logs=/var/lib/muster-agent/work/logs
check p12_output_is_hers is "$(find $logs -type f -printf '%u %m\n' | sort -u | head -1)" "ada 600" || ls -lR $logs
check p12_folders_are_the_agents is "$(find $logs -type d -printf '%u %m\n' | sort -u)" "muster-agent 700" || ls -lR $logs
check p07_state_is_private is "$(stat -c '%U %a' /var/lib/muster/data /var/lib/muster-agent/work | xargs)" "muster 700 muster-agent 700"
check p11_bob_cannot_delete_it sh -c '! setpriv --reuid bob --regid bob --init-groups muster delete job who 2>/dev/null'

# Pods survive restarts of the daemons. Their output continues, and their ends are recorded.
job bob stays 'echo $$$$; until test -e /tmp/leave; do sleep 0.5; done; echo left' >/dev/null
pid_of() { as bob muster logs job/stays 2>/dev/null | head -1 | grep -v '[^0-9]'; }
eventually pid_of
pod=$(pid_of)
runs() { is "$(ps -o user= -p "$pod")" bob; }
check p12_stays_runs runs
for unit in agent coordinator; do
  check "p12_restart_of_$unit" started_again $unit || why $unit
  check "p12_pod_survives_restart_of_$unit" runs || why $unit
done
systemctl kill --signal=KILL muster-agent muster-coordinator
for unit in coordinator agent; do check "p12_${unit}_comes_back_after_kill" eventually active $unit || why $unit; done
check p12_pod_survives_kill runs
check p12_node_is_back eventually node_ready
keeper=$(main_pid keeper)
check p12_keeper_cannot_be_stopped sh -c '! systemctl stop muster-keeper 2>/dev/null'
check p12_keeper_cannot_be_restarted sh -c '! systemctl restart muster-keeper 2>/dev/null'
. /muster/doc/again.sh
check p12_keeper_says_why_it_stays eventually stays || why keeper
check p12_keeper_stays is "$(main_pid keeper)" "$keeper"
check p12_pod_survives_all_of_it runs
touch /tmp/leave
check p12_pod_ends as bob muster wait job/stays --timeout 120s
as bob muster logs job/stays > /tmp/stays.out
check p12_its_output_is_complete has left /tmp/stays.out || show /tmp/stays.out

# Limits: first the unit's, then PAM's, which exceed the hard limit set by systemd.
mkdir -p /etc/systemd/system/muster-keeper.service.d
cp /muster/doc/limits.conf /etc/systemd/system/muster-keeper.service.d/
systemctl daemon-reload
check p12_restart_with_limits keeper_again || why keeper
check p12_job_with_limits ran ada limited 'ulimit -Sn; ulimit -Hn; ulimit -Hu; ulimit -l' || why keeper
check p12_limits is "$(xargs < /tmp/limited.out)" "4096 65536 2000 unlimited" || show /tmp/limited.out
rm /etc/systemd/system/muster-keeper.service.d/limits.conf
cp /muster/doc/pam.conf /etc/systemd/system/muster-keeper.service.d/
echo 'ada - nofile 700000' > /etc/security/limits.d/muster.conf
echo '-:bob:ALL' > /etc/security/access.conf
systemctl daemon-reload
check p12_restart_with_pam keeper_again || why keeper
check p12_job_with_pam ran ada session 'ulimit -Hn; id -u' || why keeper
check p12_pam_raises_limits is "$(xargs < /tmp/session.out)" "700000 $(id -u ada)" || show /tmp/session.out
ran bob refused true
as bob muster get pods -o yaml -l job-name=refused > /tmp/refused.pods
check p12_pam_refuses has 'exitCode: 126' /tmp/refused.pods || show /tmp/refused.pods

# Audit: the coordinator writes entries to the journal that users cannot forge.
check p11_audit_in_the_journal is "$(journalctl -q -t muster-audit MUSTER_USER=ada MUSTER_VERB=create -o cat | grep -c .)" 3 ||
  journalctl -q -t muster-audit --no-pager | show
check p11_refusals_are_there has . <(journalctl -q -t muster-audit MUSTER_USER=bob PRIORITY=5 -o cat)

for unit in coordinator agent keeper; do
  echo "    $unit: $(systemd-analyze security --no-pager "muster-$unit" | tail -1)"
done

for unit in agent coordinator; do
  check "p12_${unit}_stops" systemctl stop "muster-$unit"
  check "p12_${unit}_stopped_cleanly" is "$(state $unit Result) $(state $unit ActiveState)" "success inactive" || why $unit
done
keeper=$(main_pid keeper)
rm /etc/systemd/system/muster-keeper.service
systemctl daemon-reload
. /muster/doc/again.sh
check p12_keeper_ends eventually sh -c "! test -d /proc/$keeper" || why keeper
check p12_nothing_failed is "$(systemctl list-units --failed --no-legend 'muster*')" ""
