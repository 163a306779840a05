# Requests from programs in a pod to their node's agent, over the Unix socket work_dir/run/agent.sock. The token in its run
# directory ($MUSTER_RSH_TOKEN_FILE) and its uid prove which pod a caller belongs to.
@0xb1f4c07d93e25a68;
using Cxx = import "/capnp/c++.capnp";
using Agent = import "agent.capnp";
using T = import "types.capnp";
$Cxx.namespace("muster::wire");

interface Local {
  exec @0 (token :Text, host :Text, session :Text, attempt :Int32, command :List(Text), input :Bool) -> (result :Agent.Executed);
  # Like Session.exec. When the connection closes, everything that it started is ended.

  giveUp @1 (token :Text, message :Text, lost :Bool) -> ();
  # The worker that the launcher needs cannot be reached: it was lost, or the launcher's request was wrong. A launcher that
  # does not notice soon is ended with this message.

  world @2 (token :Text) -> (size :UInt32, mapping :Text);
  # For a rank without a launcher: how many ranks there are, and on which nodes (PMI_process_mapping). Returns once all ranks
  # have a node.

  fence @3 (token :Text, number :UInt32, puts :List(T.Pair)) -> (all :List(T.Pair));
  # For a rank without a launcher: returns what all ranks have put, once each of them has reached this fence or a later one.
  # `puts`: everything that this rank has put so far. May be repeated, even for a fence that has returned.
}
