#include "agent/pod_programs/local_client.hpp"

#include <kj/io.h>

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <utility>

namespace muster::agent {

LocalClient::Connection::Connection(kj::Own<kj::AsyncIoStream> one)
    : stream(kj::mv(one)),
      network(*stream, capnp::rpc::twoparty::Side::CLIENT),
      rpc(capnp::makeRpcClient(network)) {}

wire::Local::Client LocalClient::Connection::local() {
  capnp::MallocMessageBuilder message(8);
  auto vat = message.getRoot<capnp::rpc::twoparty::VatId>();
  vat.setSide(capnp::rpc::twoparty::Side::SERVER);
  return rpc.bootstrap(vat).castAs<wire::Local>();
}

Result<LocalClient> LocalClient::of_environment() {
  const char* const given = std::getenv("MUSTER_RSH_TOKEN_FILE");
  const std::string file = given == nullptr ? "" : given;
  const size_t name = file.rfind('/');
  const size_t dir = name == std::string::npos || name == 0 ? name : file.rfind('/', name - 1);
  if (name == std::string::npos || dir == std::string::npos)
    return invalid(
        "MUSTER_RSH_TOKEN_FILE is not set: this runs only in pods of a job with the annotation "
        "muster.dev/mpi");
  std::ifstream in(file);
  std::string token;
  std::getline(in, token);
  if (token.empty()) return invalid("there is no token in " + file);
  return LocalClient(std::move(token), file.substr(0, dir));
}

kj::Promise<kj::Own<LocalClient::Connection>> LocalClient::connecting(
    kj::AsyncIoContext& io) const {
  // Through its directory, because its own path may be too long for an address.
  kj::AutoCloseFd folder(open(dir_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string address = "unix:/proc/self/fd/" + std::to_string(folder.get()) + "/agent.sock";
  return io.provider->getNetwork()
      .parseAddress(address.c_str())
      .then([](kj::Own<kj::NetworkAddress> at) {
        auto stream = at->connect();
        return stream.attach(kj::mv(at));
      })
      .then([](kj::Own<kj::AsyncIoStream> stream) { return kj::heap<Connection>(kj::mv(stream)); })
      .attach(kj::mv(folder));
}

}  // namespace muster::agent
