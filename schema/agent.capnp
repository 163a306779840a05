# The protocol between coordinator and agent. The agent connects and registers; then both sides make calls over that one
# connection.
#
# Expected refusals are data (unions); an exception means a bug or a lost connection. Launches, kills and reports are
# batched: at most 512 entries per list and a few lists in flight.
@0xd1e7a9c84b6f3202;
using Cxx = import "/capnp/c++.capnp";
using T = import "types.capnp";
$Cxx.namespace("muster::wire");

const protocolVersion :UInt32 = 2;

# How an agent describes itself when it registers.
struct Hello {
  protocol @0 :UInt32;
  node @1 :Text;               # node name, a DNS subdomain
  workDirId @2 :Text;          # created with the work-dir, tied to its inode
  bootId @3 :Text;
  clusterId @4 :Text;          # of the cluster it served before; empty: none
  highestEpoch @5 :UInt64;     # the highest that it has ever received
  highestCommit @6 :UInt64;
  slots @7 :UInt32;            # maximum pods at a time
  cpuMillis @8 :UInt64;
  memoryBytes @9 :UInt64;
  labels @10 :List(T.Pair);
  running @11 :List(T.PodId);  # started, not ended
  waiting @12 :List(T.PodId);  # accepted, not started
  ended @13 :List(T.PodId);    # ended, not acknowledged
  pid @14 :UInt32;             # of the agent
  address @15 :Text;           # for display
  epochNonce @16 :UInt64;      # goes with highestEpoch: distinguishes coordinators on copies of one data-dir
  resources @17 :List(T.Count); # named resources (nvidia.com/gpu) and their counts
  secret @18 :Text;            # of the work-dir, 256 bits in hex: proves that the agent owns it
  clusterKey @19 :Text;        # from Welcome: proves that the agent has served this cluster
  enforcesMemory @20 :Bool;    # resources.limits of containers
  enforcesCpu @21 :Bool;
  noLimits @22 :Text;          # why one of the two is not enforced; empty: both are
  heedsOwners @23 :Bool;       # runs a pod that has an owner as that user or not at all
  ip @24 :Text;                # address where other nodes reach this one; empty: unknown
  sealed @25 :History;         # the latest that it received with a seal
  ends @26 :List(PodEnd);      # of `ended`, those left by an earlier agent, at most 10,000: if this is a new incarnation of
                               # the node, they belong to the previous one, whose pods are lost otherwise
  takesLaunches @27 :Bool;     # obeys the launches in the answer to a report
  takesTemplates @28 :Bool;    # reads PodTemplate.bytes
  joinsContainers @29 :Bool;   # heeds the container of Agent.exec; else commands join the first
  version @30 :Text;           # of the agent; empty: not known
  keeperVersion @31 :Text;     # of its keeper, likewise
  livesMs @32 :UInt64;         # until the node ends (--until), plus 1; 0: it is not known to end
}

# What a coordinator told an agent about its history. `seal` is empty (none), or 64 hexadecimal digits by which the coordinator
# recognizes that the history came from it.
struct History {
  epoch @0 :UInt64;
  nonce @1 :UInt64;
  commit @2 :UInt64;
  seal @3 :Text;
}

struct Welcome {
  clusterId @0 :Text;
  epoch @1 :UInt64;
  nonce @2 :UInt64;
  nodeId @3 :UInt32;           # this incarnation
  end @4 :List(T.PodId);       # end these first: they are not open on this node
  heartbeatMs @5 :UInt64;      # interval between heartbeats
  leaseMs @6 :UInt64;          # start nothing later than this after sending the last heartbeat that was answered
  commit @7 :UInt64;           # highest durable commit number
  clusterKey @8 :Text;         # 256 bits in hex; store it and present it at each registration
  seal @9 :Text;               # for epoch, nonce and commit; store it with them
}

struct Refusal {
  enum Why { nameTaken @0; otherCluster @1; protocol @2; invalid @3; notServing @4; }
  why @0 :Why;
  message @1 :Text;
  end @2 :List(T.PodId);       # pods to end although the agent is refused
}

interface Coordinator {
  # The bootstrap capability of an agent. Returns once every job has compared the agent's pods with its own and the
  # outcome is durable, or at once if refused.
  register @0 (hello :Hello, agent :Agent) -> (result :Registered);

  certify @1 (request :Data, node :Text) -> (result :Certified);
  # Over TLS: signs a request (PKCS 10, DER) for the node of the caller's certificate or join token, or, with a pool's
  # token, for `node`.

  prove @2 (challenge :Data) -> (clusterId :Text, proof :Text);
  # Without TLS, before register: proves to an agent that this coordinator has the key of the cluster (trust/tls/proof.hpp).
  # `challenge`: 16 to 64 random bytes.
}

struct Certified {
  union {
    certificate @0 :Text;      # PEM
    refused @1 :Text;          # why
  }
}

struct Registered {
  union {
    welcome :group { welcome @0 :Welcome; session @1 :Session; }
    refused @2 :Refusal;
  }
}

# Reported when a pod has started, and again whenever a field changes.
struct PodStart {
  pod @0 :T.PodId;
  pid @1 :UInt32;              # of the first container's newest process; 0: none has started yet
  ageMs @2 :UInt64;
  restarts @3 :UInt32;         # restarts in place so far, of all containers
  readiness @4 :T.Readiness;
  containers @5 :List(T.ContainerNow); # init containers first; empty: one container, never restarted
  cpus @6 :Text;               # those that its processes have for themselves, as "0-3,8"; empty: none
}

struct PodEnd {
  pod @0 :T.PodId;
  cause @1 :T.EndCause;
  exitCode @2 :Int32;          # of the first container that failed, else 0
  signal @3 :Int32;            # that ended it, else 0
  message @4 :Text;
  startAgeMs @5 :UInt64;       # since it started; meaningless if pid is 0
  endAgeMs @6 :UInt64;         # since it ended
  pid @7 :UInt32;              # 0: never started
  restarts @8 :UInt32;
  containers @9 :List(T.ContainerEnd); # init containers first; empty: one container, which ended as the pod did
  used @10 :T.Usage;           # absent: not known
  runs @11 :List(T.RunEnd);    # those before `containers`, oldest first: the newest ten that this agent has seen
}

# Why a node cannot take new pods, shown in its Ready condition. Empty reason: no trouble.
struct NodeTrouble {
  reason @0 :Text;             # one word, such as KeeperNotResponding
  message @1 :Text;
}

# What the command of --health-check came to.
struct HealthCheck {
  runs @0 :Bool;               # the node has one
  failure @1 :Text;            # empty: it passes
}

interface Session {
  # Valid until the agent registers again; after that, every call on it fails.
  heartbeat @0 (trouble :NodeTrouble, started :UInt64, check :HealthCheck) -> (epoch :UInt64, nonce :UInt64, commit :UInt64, seal :Text);
  # Renews the lease. DISCONNECTED: register again. `started`: how many processes of pods the agent has seen start, plus 1; 0:
  # the agent does not say.

  report @1 (starts :List(PodStart), ends :List(PodEnd)) -> (commit :UInt64, kept :List(T.PodId), seal :Text, launches :List(Launch));
  # Returns once every end is durable. The return acknowledges all ends except those in `kept`, whose jobs cannot be read at
  # the moment: the agent keeps them and reports them again after its next registration. An agent repeats a report that has
  # not returned, so an end may arrive twice; it is judged once. DISCONNECTED: register, then report again.
  # `launches`: as in Agent.launch, with templates that came over this connection before; saves a call where each end makes
  # room for the next pod. At most 512.

  leave @2 () -> ();
  # The agent drains (SIGTERM): send no new pods to this node.

  exec @3 (from :T.PodId, host :Text, session :Text, attempt :Int32, command :List(Text), input :Bool) -> (result :Executed);
  # For muster-rsh in `from`, a pod of an MPI job on this node: runs a command in the pod of the same job that `host` names
  # (its host name or index). Waits until that pod runs; dropping the call cancels it. `attempt`: -1, or the attempt that the
  # session joined before. Idempotent by `session`, so a call after a lost connection finds the command that is running.
  # `input`: as in Agent.exec.

  fence @4 (pod :T.PodId, number :UInt32, puts :List(T.Pair)) -> (group :UInt64);
  # For a rank of an MPI job without a launcher: returns once each rank has reached this fence or a later one. `puts`:
  # everything that this rank has put so far. `group` identifies the current set of ranks; any other set has another number.

  gather @5 (job :UInt64, group :UInt64) -> (all :List(T.Pair));
  # What all ranks have put, as of the last fence.

  configs @6 (pod :T.PodId, have :UInt64) -> (version :UInt64, template :T.PodTemplate, missing :Text);
  # For a pod on this node whose containers use config maps, before its processes start: its job's template with their
  # current contents. `have`: the version that the agent has; if it is current, no template is returned. `missing`: what the
  # pod must wait for, for people; again no template is returned.
}

# A command that joins a running pod. Its output is kept in files next to the pod's, so it can be read again from any offset.
# Dropping the capability does not end the command, but if no one resumes it within a minute while the node is connected, it
# is ended.
interface Process {
  read @0 (stdout :UInt64, stderr :UInt64, limit :UInt32) -> (stdout :Data, stderr :Data, ended :Bool, exitCode :Int32, message :Text);
  # The output from these offsets, at most `limit` bytes each. Returns when there is any, when the command has ended, or after
  # some seconds. `ended`: there will be no more. `exitCode` is 128+S after signal S, and 255 with a message if the command
  # did not start or was lost.

  write @2 (offset :UInt64, data :Data, eof :Bool) -> (taken :UInt64, closed :Bool);
  # The command's input from `offset` on (at most 64 KiB are used), and whether it ends there. Returns how much has been taken
  # so far, once that is more than `offset`, or after some seconds. Input that was taken before is ignored, so a write can be
  # repeated after a lost connection. `closed`: no more will be taken. Only one write waits at a time; a later one replaces it.

  end @1 () -> ();
  # SIGTERM, then SIGKILL; then the command is forgotten, so call this even if it has ended.
}

struct Executed {
  union {
    ran :group {
      process @0 :Process;
      attempt @1 :UInt32;
      index @2 :UInt32;
      heedsInput @6 :Bool;     # it would read what is written; false: the agent does not support input
    }
    refused :group {
      message @3 :Text;        # for the user
      lost @4 :Bool;           # the pod existed and is gone; else the request was wrong
      over @5 :Bool;           # the session existed and is gone, whether or not the pod is
    }
  }
}

# Where the pods of an MPI job are. Each list replaces the previous one.
struct Host {
  index @0 :UInt32;
  attempt @1 :UInt32;
  node @2 :Text;               # name
  ip @3 :Text;                 # of the node; empty: unknown
  running @4 :Bool;
}
struct Hosts {
  job @0 :UInt64;
  completions @1 :UInt32;
  hosts @2 :List(Host);        # open pods by index, at most one per index
}

struct Launch {
  pod @0 :T.PodId;
  generation @1 :Int64;        # of the template
}

struct Kill {
  pod @0 :T.PodId;
  graceMs @1 :Int64;           # time between SIGTERM and SIGKILL; 0: SIGKILL at once
}

struct Limit {
  pod @0 :T.PodId;
  limitMs @1 :Int64;           # of the pod, from its first process; 0: none
}

interface Agent {
  launch @0 (epoch :UInt64, nonce :UInt64, templates :List(T.PodTemplate), pods :List(Launch), commit :UInt64, seal :Text) -> ();
  # Idempotent by pod id: a pod that runs, waits or has an unacknowledged end is not started again. Returns when the pods are
  # accepted, not when they have started. `commit`: as in Welcome, so an agent that has a pod of a job always knows a commit
  # that contains the job; 0: from an earlier version.

  kill @1 (epoch :UInt64, nonce :UInt64, kills :List(Kill)) -> ();
  # The outcome is an end in a report, even for a pod that waits (neverStarted). Unknown pods are also reported as
  # neverStarted.

  readLog @2 (pod :T.PodId, container :Text, stream :LogStream, offset :Int64, limit :UInt32, template :LogName, run :Int32 = -1, times :Bool) -> (found :Bool, data :Data, offset :Int64, size :UInt64, running :Bool, marks :List(LogMark));
  # Up to `limit` bytes (at most 1 MiB) from `offset`; a negative offset counts lines from the end (-10: the last ten
  # lines). The returned offset is where `data` begins. `running` false: there will be no more. `run`: as in findLog;
  # nothing beyond that process's output is returned. `times`: return the marks that give the lines in `data` their times.

  unacked @3 (job :UInt64) -> (ended :List(T.PodId));
  # The pods of this job that have ended here and are not acknowledged. Asked before a decision that would count them as
  # killed.

  hosts @4 (epoch :UInt64, nonce :UInt64, jobs :List(Hosts)) -> ();
  # Sent before the launch of a pod of an MPI job and whenever the list changes, to nodes that have such pods.

  exec @5 (epoch :UInt64, nonce :UInt64, template :T.PodTemplate, pod :T.PodId, session :Text, command :List(Text), input :Bool, terminal :Bool, container :Int32 = -1) -> (result :Executed);
  # Runs a command in a container of the pod, as its user, with its environment and directory. `container`: its position in
  # the template, init containers first; the command is refused if it is not running. -1: the first that is not an init
  # container. The template's permit, if any, is for this command. Idempotent by `session`, 32 hexadecimal digits. `input`:
  # the command reads what Process.write sends; else it reads nothing. `terminal`: it runs in a terminal, and its input is
  # framed (base/terminal_input.hpp).

  findLog @6 (container :Text, template :LogName, stdout :Bool, stderr :Bool, run :Int32 = -1, lastLines :Int64 = -1, sinceMs :Int64) -> (stdout :UInt64, stderr :UInt64);
  # The offsets at which to begin to read the outputs that are asked for. `run`: only what the container's first (0),
  # second (1), … process wrote; -1: all. `lastLines`: of both outputs together, by the times of the lines; -1: all.
  # `sinceMs`: of these lines, those that are not older.

  limit @7 (epoch :UInt64, nonce :UInt64, limits :List(Limit)) -> ();
  # How long pods may run, in place of what their templates say. Starts nothing: pods that the agent does not have are left
  # out. A new limit that has passed ends the pod.

  meet @8 (epoch :UInt64, nonce :UInt64) -> (port :UInt16, greeting :Text);
  # Opens a port on the node's address (Hello.ip), which sends `greeting` to whoever connects. It is closed again when this has
  # not been called for a while. 0: the address is not one of this machine.

  reach @9 (epoch :UInt64, nonce :UInt64, peers :List(Peer)) -> (failures :List(Text));
  # Connects to these ports from the node's address, a few times each if needed, which takes some seconds. Returns for each
  # peer why it was not reached; empty: it was.
}

# A node's port that another one tries to reach (Agent.meet).
struct Peer {
  ip @0 :Text;
  port @1 :UInt16;
  greeting @2 :Text;
}

enum LogStream { stdout @0; stderr @1; }

# The output had reached `offset` by `atMs` (agent/files/log_marks.hpp).
struct LogMark {
  offset @0 :UInt64;
  atMs @1 :Int64;              # since the Unix epoch, by the node's clock
}

# What the names of a pod's log files are derived from, for an agent that no longer has the template.
struct LogName {
  jobUid @0 :Text;
  podName @1 :Text;
}
