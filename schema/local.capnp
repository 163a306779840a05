# What programs in a pod ask of the agent of their node, over the Unix socket work_dir/run/agent.sock. A caller proves with the
# token in its run directory ($MUSTER_RSH_TOKEN_FILE), and by its uid, which pod it belongs to.
@0xb1f4c07d93e25a68;
using Cxx = import "/capnp/c++.capnp";
using Agent = import "agent.capnp";
using T = import "types.capnp";
$Cxx.namespace("muster::wire");

interface Local {
  exec @0 (token :Text, host :Text, session :Text, attempt :Int32, command :List(Text)) -> (result :Agent.Executed);
  # As Session.exec. Ends what it has started when the connection closes.

  giveUp @1 (token :Text, message :Text, lost :Bool) -> ();
  # The worker that the launcher needs cannot be reached: it was lost, or the launcher has asked for something wrong. A
  # launcher that has not noticed soon is ended, with this message.

  world @2 (token :Text) -> (size :UInt32, mapping :Text);
  # For a rank that runs without a launcher: how many there are, and on which nodes (PMI_process_mapping). Returns once all
  # ranks have a node.

  fence @3 (token :Text, number :UInt32, puts :List(T.Pair)) -> (all :List(T.Pair));
  # Likewise: returns what all ranks have put once each of them has come to this fence or a later one. `puts`: all that this
  # rank has put so far. May be repeated, also for a fence that has returned.
}
