#!/usr/bin/python3
"""Attacks succeed without the guards that stop them: each guard in turn is switched off, and its tests must fail.

    tests/guards.py [NAME…]    builds muster with guards that can be switched off, and runs the tests with and without each guard (or those named)
    tests/guards.py --write    rewrites the table in docs/security.md, which tests/e2e/docs.py compares

Builds once, in build/guards, from a copy of the sources in which OFF means "this guard is switched off". A guard is off while a certain
file exists, which works for daemons, keepers and pods alike. Needs root for the tests with real users.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build/guards"
BUILT = WORK / "build/release"
# Outside the checkout, which some users may be unable to enter.
SWITCHES = pathlib.Path(f"/tmp/muster-guards-{os.getuid()}")
PAGE = ROOT / "docs/security.md"
HEAD = "| attack | guard | the tests that fail without it |\n| --- | --- | --- |\n"


@dataclasses.dataclass
class Guard:
    name: str
    attack: str
    guard: str
    edits: list  # (file, text, text with OFF)
    tests: list  # a program and a filter, or a suite of tests/e2e and a test
    also: tuple = ()  # other guards that would also stop the attack


def rule(name, attack, condition, tests):
    """A guard that, when off, lets everyone do one thing to all jobs."""
    seam = "  if (request.resource.empty()) return of_path(caller, request);\n"
    return Guard(name, attack, "the rules, `api/access/rules.cpp`",
                 [("api/access/rules.cpp", seam, f"  if (OFF && {condition}) return {{Access::allowed, \"\"}};\n{seam}")], tests)


ROUTES = "routes.py EachRoute.test_each_route_answers_each_user_by_role"
GUARDS = [
    Guard("squatter", "another user who holds the ports of a coordinator that is down", "`TrustedServers`, `base/peer/trusted_servers.cpp`",
          [("base/peer/trusted_servers.cpp", "  if (trust(*user)) return Nothing{};", "  if (OFF || trust(*user)) return Nothing{};")],
          ["ports.py Squatters.test_p01_agent_and_client_refuse_a_port_squatter", "base_test TrustedServersTest.P01PortOfOtherUserIsRefusedByName"]),
    Guard("cluster-key", "a coordinator that poses as the one of this cluster", "`Agent::prove`, `agent/agent_connection.cpp`",
          [("agent/agent_connection.cpp", "if (link.other_cluster ||\n", "if (OFF || link.other_cluster ||\n")],
          ["agent_test AgentTest.P01RegistersOnlyWithACoordinatorThatHasTheKeyOfItsCluster"]),
    Guard("another-machine", "an agent without TLS that is sent to another machine", "`TrustedServers::refuses_address`, `base/peer/trusted_servers.cpp`",
          [("base/peer/trusted_servers.cpp", "if (remote_ == Remote::accepted || !parsed", "if (OFF || remote_ == Remote::accepted || !parsed")],
          ["agent_test AgentTest.P01DoesNotConnectToAnotherMachineWithoutTls"]),
    Guard("user-priority", "a priority that ends everybody's work", "`lacks_rights`, `core/queue/rights.cpp`",
          [("core/queue/rights.cpp", "if (spec.pod.priority && *spec.pod.priority > most)", "if (!OFF && spec.pod.priority && *spec.pod.priority > most)")],
          ["core_test Rights.P11PriorityAboveUserMaximumNeedsOperator", "api_test AccessTest.P11PrioritiesAreForOperators"]),
    Guard("user-tolerations", "a toleration that overrules a cordon or a `NoExecute` taint", "`may_tolerate`, `core/cluster/nodes/demand.cpp`",
          [("core/cluster/nodes/demand.cpp", "return !demand.of_user ||", "return OFF || !demand.of_user ||")],
          ["core_test Demand.P11UsersTolerateNeitherACordonNorANoExecuteTaint"]),
    Guard("history-of-others", "a user who reads in the history what others ran and used", "`HistoryRoutes::own_jobs`, `api/routes/history_routes.cpp`",
          [("api/routes/history_routes.cpp", "{.owner = gate_.viewer(exchange.caller).uid,",
            "{.owner = OFF ? std::nullopt : gate_.viewer(exchange.caller).uid,")],
          ["api_test HistoryRoutesTest.P11UsersSeeTheirOwnJobsOnly", "api_test HistoryRoutesTest.P11AttemptsAreTheOwnersToo"]),
    Guard("run-directory", "a stolen agent that puts programs of its own first in a pod's PATH", "`Owners::command`, `keeper/users/owners.cpp`",
          [("keeper/users/owners.cpp", "const bool served = !permit.job.mpi.empty() &&", "const bool served = (OFF || !permit.job.mpi.empty()) &&")],
          ["keeper_test OwnersTest.P12OnlyMpiJobsAreServedThroughADirectoryOfTheAgent"]),
    Guard("scratch-parent", "a stolen agent that renames the directories of pods", "`only_by`, `base/files/owned_path.cpp`",
          [("keeper/files/pod_dirs.cpp", "if (shared && !only_by(0, path))", "if (shared && !only_by(0, path) && !OFF)")],
          ["keeper_test PodDirsOfUsers.P12RefusesParentThatAgentCouldRename"]),
    Guard("moved-directory", "another user's directory, moved into a volume that root removes", "`ActAs`, `keeper/files/pod_dirs.cpp`",
          [("keeper/files/pod_dirs.cpp", "acts_(geteuid() == 0 && uid != 0)", "acts_(geteuid() == 0 && uid != 0 && !OFF)")],
          ["keeper_test PodDirsOfUsers.P12FilesThatUserMayNotRemoveStay"]),
    Guard("orphans", "orphans that put off the ends of other users' pods", "`Supervisor::may_have_left`, `keeper/loop/supervisor.cpp`",
          [("keeper/loop/supervisor.cpp", "return stray.user == process.user.value_or(geteuid()) &&\n         (stray.start_ticks + 2) * kNsPerTick >= process.start->at_ns;",
            "return OFF || (stray.user == process.user.value_or(geteuid()) &&\n                (stray.start_ticks + 2) * kNsPerTick >= process.start->at_ns);"),
           ("keeper/loop/supervisor.cpp", "(!scans || (process.looks < kStrayLooks &&", "(!scans || ((process.looks < kStrayLooks || OFF) &&")],
          ["users.py Owners.test_p12_orphans_of_another_user_delay_no_end"]),
    Guard("node-claims", "a stolen node that claims the labels that other users' jobs look for", "`hold`, `core/cluster/nodes/claims.hpp`",
          [("coordinator/rpc/registration.cpp", "  if (caller->guest) {\n    hello->claims", "  if (caller->guest && !OFF) {\n    hello->claims")],
          ["links.py Nodes.test_p06_a_node_has_the_labels_that_its_token_allows"]),
    Guard("backup-place", "a backup into a directory that its caller can swap for another", "`backup_place`, `storage/part_dir.cpp`",
          [("storage/part_dir.cpp", "if (!only_by(geteuid(), *parent)", "if (!OFF && (!only_by(geteuid(), *parent)"),
           ("storage/part_dir.cpp", "|| open_to_others(info))", "|| open_to_others(info)))")],
          ["storage_test P11Backup.P5RefusesPathThatOtherUsersMayReplace"]),
    Guard("another-server", "a server of another kind that answers 200 to everything", "`Expected`, `client/connect/expected.cpp`",
          [("client/connect/http.cpp", "  if (hearing.met) return foreign(method_name", "  if (hearing.met && !OFF) return foreign(method_name")],
          ["strangers.py Strangers.test_p26_no_answer_of_another_server_is_believed"]),
    Guard("unfinished-bodies", "bodies that are never finished, which fill the coordinator's memory", "`Exchange::make_room`, `api/request/exchange.cpp`",
          [("api/request/exchange.cpp", "if (body_share_ && ", "if (body_share_ && !OFF && ")],
          ["api_test P10Bodies.UnfinishedBodiesShareOneBudget", "api_test P10UsersBodies.UnfinishedBodiesOfOneUserLeaveRoomForOthers"]),
    Guard("pods-socket", "users without a pod on a node who fill the memory of its agent", "`LocalServer::serves`, `agent/pod_programs/local_server.cpp`",
          [("agent/pod_programs/local_server.cpp", "return uid == 0 || ", "return OFF || uid == 0 || ")],
          ["agent_test P10LocalServer.ServesOnlyUsersWithPodOnThisNode", "mpi.py Owners.test_p10_the_agents_socket_is_for_users_with_a_pod_here"]),
    Guard("pods-messages", "messages of a pod that are never finished, which fill its agent's memory", "`BoundedStream`, `agent/pod_programs/bounded_stream.cpp`",
          [("agent/pod_programs/bounded_stream.cpp", "KJ_REQUIRE(share_.take(bytes),", "KJ_REQUIRE(OFF || share_.take(bytes),")],
          ["agent_test P10LocalServer.LimitsTheBytesOfUnfinishedMessages"]),
    Guard("long-selector", "a selector of thousands of requirements, judged for each object", "`Selector::add`, `api/view/query/selector.cpp`",
          [("api/view/query/selector.cpp", "if (text.size() <= Selector::kBytesMax)", "if (OFF || text.size() <= Selector::kBytesMax)"),
           ("api/view/query/selector.cpp", "if (rules_.size() == kRulesMax)", "if (!OFF && rules_.size() == kRulesMax)")],
          ["api_test Selector.P10LimitsRequirementsAndLength"]),
    Guard("many-watches", "watches of one user that leave no room for those of others", "`stream_watch`, `api/request/streams.cpp`",
          [("api/request/streams.cpp", "if (!place->take(1))", "if (!OFF && !place->take(1))")],
          ["api_test P10Watches.AreLimited", "api_test P10UsersWatches.WatchesOfOneUserLeaveRoomForOthers"]),
    Guard("huge-parallelism", "a job of two thousand million pods that nobody can place", "`manage_pods`, `core/job/rules/pods.cpp`",
          [("core/job/rules/pods.cpp", "if (!job.gang().together) {", "if (!job.gang().together && !OFF) {")],
          ["core_test P10Creation.AllIndexesRunDespiteMaximumOfPendingPods"]),
    Guard("closed-socket", "a socket closed before its owner is looked up, which the kernel lists with uid 0",
          "a uid counts only with an inode: `TcpSocket::held`, `base/peer/tcp_end.cpp`",
          [("base/peer/tcp_end.cpp", "return inode != 0;", "return OFF || inode != 0;"),
           ("base/peer/tcp_end.cpp", "    default:\n      return false;", "    default:\n      return OFF;")],
          ["base_test *P01ClosedSocketHasNoUser*"]),
    Guard("join-token-again", "a join token replayed for another key", "`TrustStore::certify`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "if (token.has_certified(use) ||", "if (OFF || token.has_certified(use) ||")],
          ["store_test TrustStoreTest.AJoinTokenIsGoodForOneKey", "store_test TrustStoreTest.P13APoolsTokenIsGoodForSoManyNodesOfThatPool",
           "links.py Nodes.test_a_token_is_good_for_one_agent"]),
    Guard("pool-takes-node", "a pool's token with which somebody becomes another node", "`TrustStore::refuses_locked`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "if (!of_pool && (known", "if (!OFF && !of_pool && (known")],
          ["store_test TrustStoreTest.P13APoolTakesOverNoNodeThatJoinedOtherwise"]),
    Guard("join-token-of-node", "a node's token with which somebody copies the journal", "`TrustStore::refuses_locked`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "identity_of(it->second.kind) != who.kind", "(!OFF && identity_of(it->second.kind) != who.kind)")],
          ["store_test TrustStoreTest.P13OnlyACoordinatorsTokenMakesACoordinator"]),
    Guard("authority-by-token", "a stolen token of an admin with which somebody copies the journal", "`TrustRoutes::make_for_coordinator`, `api/routes/access/trust_routes.cpp`",
          [("api/routes/access/trust_routes.cpp", "  if (exchange.peer.remote)\n    return AccessGate::forbid(exchange,\n                              \"a token cannot",
            "  if (exchange.peer.remote && !OFF)\n    return AccessGate::forbid(exchange,\n                              \"a token cannot")],
          ["api_test CoordinatorsTest.P13NoTokenOfACoordinatorByAToken"]),
    Guard("credential-again", "a munge credential replayed", "`UsedNonces::use`, `trust/store/used_nonces.cpp`",
          [("trust/store/used_nonces.cpp", "if (found->second.contains(nonce))", "if (!OFF && found->second.contains(nonce))")],
          ["store_test MungeDesk.AcceptsACredentialOnce"]),
    Guard("command-again", "a signed command replayed to the keeper", "`Supervisor::refuses_session`, `keeper/loop/supervisor_agent.cpp`",
          [("keeper/loop/supervisor_agent.cpp", "if (!host->joined.insert(signed_for.id).second)",
            "if (!host->joined.insert(signed_for.id).second && !OFF)")],
          ["keeper_test *SignedSessions.RunOnceAndAsTheOwner*"]),
    Guard("expired-token", "an expired token of a user", "`TrustStore::token_of`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "over(it->second, now) || !same_secret", "(over(it->second, now) && !OFF) || !same_secret")],
          ["store_test TrustStoreTest.UserTokenIsValidUntilItExpires"]),
    Guard("expired-certificate", "an expired certificate", "TLS, as `trust/tls/link.cpp` sets it up",
          [("trust/tls/link.cpp", "  options.defaultKeypair = pair;\n  return kj::heap<kj::TlsContext>(kj::mv(options));\n}\n\nkj::Own<kj::TlsContext> client",
            "  options.defaultKeypair = pair;\n  auto made = kj::heap<kj::TlsContext>(kj::mv(options));\n"
            "  if (OFF) X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(static_cast<SSL_CTX*>(context_of(*made))), X509_V_FLAG_NO_CHECK_TIME);\n"
            "  return made;\n}\n\nkj::Own<kj::TlsContext> client"),
           ("trust/tls/link.cpp", "template struct Shows<&kj::TlsPeerIdentity::cert>;",
            "template struct Shows<&kj::TlsPeerIdentity::cert>;\n"
            "template <auto Member> struct ShowsContext { friend void* context_of(kj::TlsContext& c) { return c.*Member; } };\n"
            "void* context_of(kj::TlsContext& c);\ntemplate struct ShowsContext<&kj::TlsContext::ctx>;"),
           ("trust/tls/link.cpp", "#include \"trust/tls/link.hpp\"\n", "#include \"trust/tls/link.hpp\"\n#include <openssl/ssl.h>\n")],
          ["coordinator_test TlsPortTest.AnExpiredCertificateIsRefused"], also=("certificate-expires",)),
    Guard("certificate-expires", "a certificate that expires while its connection is open", "`AgentPorts::expired`, `coordinator/links/agent_ports.cpp`",
          [("coordinator/links/agent_ports.cpp", "if (expires) gone", "if (expires && !OFF) gone")],
          ["coordinator_test TlsPortTest.AConnectionEndsWhenItsCertificateExpires"]),
    Guard("revoked-certificate", "a revoked certificate", "`TrustStore::refuses_locked`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "if (who.generation == trust_.generation(who.node))",
            "if (OFF || who.generation == trust_.generation(who.node))")],
          ["coordinator_test TlsPortTest.RevokedCertificateIsRefusedWithReason",
           "links.py Nodes.test_revoked_node_is_disconnected_and_returns_with_a_new_token"]),
    Guard("revoked-connection", "a certificate revoked while its connection is open", "`TrustStore::revoke_node`, `trust/store/trust_store.cpp`",
          [("trust/store/trust_store.cpp", "  }\n  if (drop_) drop_(node);\n}", "  }\n  if (drop_ && !OFF) drop_(node);\n}")],
          ["links.py Nodes.test_revoked_node_is_disconnected_and_returns_with_a_new_token"]),
    Guard("another-name", "a stolen node's certificate that registers another name", "`register_`, `coordinator/rpc/registration.cpp`",
          [("coordinator/rpc/registration.cpp", "guest->who.node != hello->node))", "(guest->who.node != hello->node && !OFF)))")],
          ["coordinator_test TlsPortTest.CertificateOfAnotherNodeIsRefused"]),
    Guard("forged-end", "the end of another node's pod, forged", "`open_on`, `core/job/rules/ingest.cpp`",
          [("core/job/rules/ingest.cpp", "it->second.node != node ? nullptr", "(it->second.node != node && !OFF) ? nullptr")],
          ["core_test P13Reports.OfAnotherNodeChangeNothing"]),
    Guard("plain-text", "an agent with a certificate redirected to a port without TLS", "`AgentConnection`, `agent/agent_connection.cpp`",
          [("agent/agent_connection.cpp", "= credentials_.encrypted()\n", "= credentials_.encrypted() && !OFF\n")],
          ["links.py Nodes.test_an_agent_that_has_a_certificate_never_speaks_without_tls"]),
    Guard("tls-1.2", "a downgrade to TLS 1.2", "`options_of`, `trust/tls/link.cpp`",
          [("trust/tls/link.cpp", "  options.cipherList = kNoCipherBefore13;", "  if (!OFF) options.cipherList = kNoCipherBefore13;")],
          ["links.py Clients.test_only_tls_13_is_spoken"]),
    Guard("links-in-work-dir", "symbolic links in a work-dir", "`open_beneath`, `keeper/users/owners.cpp`",
          [("keeper/users/owners.cpp", "how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;", "how.resolve = OFF ? 0 : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;")],
          ["users.py Owners.test_keeper_follows_no_symbolic_links_in_the_work_dir"]),
    Guard("links-in-scratch", "a link in a pod's scratch directory, when root removes it", "`open_dir`, `keeper/files/pod_dirs.cpp`",
          [("keeper/files/pod_dirs.cpp", "flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);\n  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;",
            "flags | O_DIRECTORY | (OFF ? 0 : O_NOFOLLOW) | O_CLOEXEC);\n"
            "  how.resolve = OFF ? 0 : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;"),
           ("keeper/files/pod_dirs.cpp", "if (unlinkat(dir.get(), entry.c_str(), 0) == 0) continue;",
            "if (!OFF && unlinkat(dir.get(), entry.c_str(), 0) == 0) continue;\n        if (OFF && faccessat(dir.get(), (entry + \"/.\").c_str(), F_OK, 0) != 0 && unlinkat(dir.get(), entry.c_str(), 0) == 0) continue;")],
          ["keeper_test PodDirsTest.FollowsNoLink"]),
    Guard("another-owner", "a job that names another user", "`keep_owner`, `core/spec/fields/owner.cpp`",
          [("core/spec/fields/owner.cpp", "if (it != annotations.end() && (", "if (OFF && it != annotations.end()) continue;\n    if (it != annotations.end() && (")],
          ["core_test Owner.AnnotationsMayBeRepeatedButNotForged", "api_test AccessTest.NoRequestChoosesAnOwner"]),
    Guard("unsigned-permit", "a stolen agent that names the user or the command", "`Owners::accept`, `keeper/users/owners.cpp`",
          [("keeper/users/owners.cpp", "if (!verify_permit(", "if (!OFF && !verify_permit(")],
          ["keeper_test OwnersTest.HonourSignedPermitsForThisNodeAndRealUsers"]),
    Guard("root", "a job of root, or of a system user", "`Owners::accept`, `keeper/users/owners.cpp`",
          [("keeper/users/owners.cpp", "if (permit->owner.uid == 0 || permit->owner.uid < settings_.uid_min || permit->owner.gid == 0)",
            "if (!OFF && (permit->owner.uid == 0 || permit->owner.uid < settings_.uid_min || permit->owner.gid == 0))")],
          ["users.py Owners.test_jobs_of_root_do_not_run"]),
    Guard("output-socket", "a user who asks the keeper for others' output", "`calls_as_agent`, `keeper/users/output_server.cpp`",
          [("keeper/users/output_server.cpp", "(peer.uid == owners.agent_uid() || peer.uid == 0)", "(OFF || peer.uid == owners.agent_uid() || peer.uid == 0)")],
          ["users.py Owners.test_users_cannot_reach_each_others_processes"]),
    Guard("others-jobs", "reading another user's pods and logs", "`of_other_user`, `api/access/rules.cpp`",
          [("api/access/rules.cpp", "  return denied(kOfAnother);\n}\n\n}  // namespace",
            "  if (OFF) return {Access::allowed, \"\"};\n  return denied(kOfAnother);\n}\n\n}  // namespace")],
          ["api_test AccessTest.PodsEventsAndLogsOfOtherUsersAreRefused", ROUTES]),
    Guard("deputy-retry", "a retry of another user's job, to read it or to run as that user", "the rules, `api/access/rules.cpp`",
          [("api/access/rules.cpp", "return {Access::summary, \"\"};", "return {OFF ? Access::allowed : Access::summary, \"\"};")],
          ["api_test AccessTest.OthersSeeNameOwnerAndCountsOnly", "users.py Owners.test_retry_belongs_to_its_requester"]),
    rule("deputy-patch", "a patch of another user's job", 'request.verb == "patch"', ["api_test AccessTest.OthersCannotChangeAnything", ROUTES]),
    rule("deputy-scale", "scaling another user's job", 'request.subresource == "scale"',
         ["api_test AccessTest.OthersCannotChangeAnything", ROUTES]),
    rule("deputy-eviction", "evicting another user's pod", 'request.subresource == "eviction"',
         ["api_test AccessTest.OthersCannotChangeAnything", ROUTES]),
    rule("deputy-exec", "a command in another user's pod", 'request.subresource == "exec"', ["api_test ExecTest.OnlyOwnerAndAdminMayExec", ROUTES]),
    rule("deputy-log", "the log of another user's pod", 'request.subresource == "log"',
         ["api_test AccessTest.PodsEventsAndLogsOfOtherUsersAreRefused", ROUTES]),
    rule("deputy-lead", "a user who moves the lead of the cluster, or lets a machine copy its journal", 'request.resource == "coordinators"',
         ["api_test CoordinatorsTest.OperatorsChangeWhoLeads", "api_test CoordinatorsTest.P13OnlyAdminsCreateTokensForCoordinators", ROUTES]),
    Guard("name-changes-hands", "a name that becomes another user's while a request for it is read", "`Routes::with_body`, `api/routes/routes.cpp`",
          [("api/routes/routes.cpp", "if (auto refused = gate.refuse(exchange)) return kj::mv(*refused);",
            "if (auto refused = gate.refuse(exchange); refused && !OFF) return kj::mv(*refused);")],
          ["api_test AccessTest.DeleteIsRefusedIfJobChangedOwnerBeforeBodyArrived"]),
    Guard("hidden-namespaces", "a user who looks for the namespaces of others", "`sees_namespace`, `api/view/query/seen_namespaces.cpp`",
          [("api/view/query/seen_namespaces.cpp", "if (!viewer.uid) return view.in_use(name);", "if (OFF || !viewer.uid) return view.in_use(name);")],
          ["api_test PrivateNamespaceTest.P12NamespaceOfOtherUsersIsHidden"]),
    Guard("hidden-dependencies", "a job that waits for another user's, to learn whether it exists and how it ended", "`may_await`, `core/registry/registry.cpp`",
          [("core/registry/registry.cpp", "if (!is_users(meta.annotations)) return true;", "if (OFF || !is_users(meta.annotations)) return true;")],
          ["core_test RegistryTest.P12UsersJobMayNameOnlyJobsOfSameUser", "actors_test Dependents.P12MayNameOnlyJobsOfTheSameUser", "users.py Users.test_p12_dependency_does_not_reveal_jobs_of_others"]),
    Guard("namespace-orphans", "orphaned pods that keep a namespace from being deleted", "`NamespaceSweep::sweep_job`, `api/routes/kept/namespace_sweep.cpp`",
          [("api/routes/kept/namespace_sweep.cpp", "if (!job.state().orphaned) return;", "if (OFF || !job.state().orphaned) return;")],
          ["api_test NamespaceAccessTest.P12OrphanedPodsAreDeletedWithNamespace", "users.py Owners.test_p12_orphans_do_not_hold_a_namespace"]),
    Guard("terminal", "text of another user that acts on the terminal of who reads it", "`SafeOutput`, `client/terminal/safe_output.cpp`",
          [("client/terminal/safe_output.cpp", "    return put(visible(data));", "    return put(OFF ? std::string(data) : visible(data));")],
          ["client_test SafeOutput.P12EscapesWhateverAVerbPrints", "users.py Owners.test_p12_what_users_write_does_not_act_on_anybodys_terminal"]),
    Guard("own-output", "a user who puts another user's file where a job's output should be", "`open_of`, `client/inputs/own_files.cpp`",
          [("client/inputs/own_files.cpp", "if (Status own = belongs_to(*file, user); !own)", "if (Status own = belongs_to(*file, user); !OFF && !own)")],
          ["client_test OwnFilesTest.RefusesWhatOthersCouldHavePutThere", "users.py Owners.test_logs_of_files_show_only_the_owners_own"]),
    Guard("own-inputs", "a user who names another user's file as the inputs of a job", "`JobInputs`, `client/inputs/inputs.cpp`",
          [("client/inputs/inputs.cpp", "file.ok() && (pods_user(job) == geteuid()", "file.ok() && (OFF || pods_user(job) == geteuid()")],
          ["client_test InputsForAReader.AreThoseThatTheOwnerCouldRead"]),
    Guard("links-on-the-way", "a symbolic link of another user in place of a directory on the way to a job's output or inputs",
          "`LinkWalk`, `base/files/trusted_links.cpp`",
          [("base/files/trusted_links.cpp", "if (owner != 0 && owner != user_)", "if (!OFF && owner != 0 && owner != user_)")],
          ["base_test TrustedLinks.AreThoseOfRootAndTheUser", "users.py Owners.test_files_for_output_are_opened_as_the_owner"]),
]


def code(text):
    program, name = text.split()
    where = f"tests/e2e/{program}" if program.endswith(".py") else program
    return f"`{name.replace('*', '')}` (`{where}`)"


def table():
    rows = (f"| {one.attack} | {one.guard} | {'; '.join(map(code, one.tests))} |\n" for one in GUARDS)
    return HEAD + "".join(rows)


def write_page():
    text = PAGE.read_text()
    begin = text.index(HEAD)
    end = text.find("\n\n", begin) + 1 or len(text)
    PAGE.write_text(text[:begin] + table() + text[end:])


def edited():
    """The sources with guards that can be switched off, by file; fails if a guard has moved."""
    texts = {}
    for guard in GUARDS:
        off = f'(::access("{SWITCHES / guard.name}", F_OK) == 0)'
        for file, old, new in guard.edits:
            text = texts.setdefault(file, (ROOT / file).read_text())
            if text.count(old) != 1:
                sys.exit(f"guards.py: {guard.name}: its text is {text.count(old)} times in {file}, and must be there once:\n{old}")
            texts[file] = text.replace(old, new.replace("OFF", off))
    return {file: "#include <unistd.h>\n" + text for file, text in texts.items()}


def build():
    texts = edited()
    for file in subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
        if not (ROOT / file).is_file():
            continue
        text = texts[file].encode() if file in texts else (ROOT / file).read_bytes()
        target = WORK / file
        if not target.exists() or target.read_bytes() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
            shutil.copymode(ROOT / file, target)
    programs = {one.split()[0] for guard in GUARDS for one in guard.tests}
    subprocess.run(["cmake", "--preset", "release"], cwd=WORK, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILT, "muster", "muster-keeper", *(one for one in programs if not one.endswith(".py"))], check=True,
                   stdout=subprocess.DEVNULL)


def passes(test):
    """Whether the test passed; exits if it did not run."""
    program, name = test.split()
    if program.endswith(".py"):
        command = ["/usr/bin/python3", ROOT / "tests/e2e" / program, name]
    else:
        command = [BUILT / program, f"--gtest_filter={name}"]
    try:
        done = subprocess.run(command, env={**os.environ, "MUSTER": str(BUILT / "muster")}, text=True, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return False
    said = done.stdout + done.stderr
    if "skipped" in said.lower() or "Running 0 tests" in said:
        sys.exit(f"guards.py: {test} did not run:\n{said[-1000:]}")
    return done.returncode == 0


def main(names):
    if names == ["--write"]:
        return write_page()
    known = {guard.name: guard for guard in GUARDS}
    if unknown := set(names) - set(known):
        sys.exit(f"guards.py: there is no guard {', '.join(unknown)}; there are {', '.join(known)}")
    build()
    SWITCHES.mkdir(exist_ok=True)
    SWITCHES.chmod(0o755)
    bad = 0
    try:
        for guard in [known[name] for name in names] or GUARDS:
            for test in guard.tests:
                held = passes(test)
                for name in (guard.name, *guard.also):
                    (SWITCHES / name).touch()
                without = passes(test)
                for name in (guard.name, *guard.also):
                    (SWITCHES / name).unlink()
                bad += not held or without
                print("ok  " if held and not without else "FAIL", guard.name, test,
                      "" if held else "fails with the guard", "passes without the guard" if without else "", flush=True)
    finally:
        shutil.rmtree(SWITCHES)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
