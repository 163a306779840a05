// Routes: what the paths and methods of the objects' API do.
#pragma once

#include "api/backend.hpp"
#include "api/exchange.hpp"
#include "api/streams.hpp"

#include <memory>
#include <optional>
#include <string>

namespace muster::api {

struct ServerOptions;

// Which object or collection a path names.
struct Target {
  Kind kind = Kind::job;
  std::string ns;    // empty: all namespaces, or a kind without
  std::string name;  // empty: the collection
  std::string sub;   // "log", "status"

  static std::optional<Target> of(const Url& url);
};

class Routes {
 public:
  Routes(StreamContext& context, const View& view, Backend& backend, Renderer& renderer,
         const ServerOptions& options)
      : context_(context), view_(view), backend_(backend), renderer_(renderer), options_(options) {}

  kj::Promise<void> answer(Exchange& exchange, Target target);

 private:
  std::optional<Shown> find(const Target& target) const;
  kj::Promise<void> get(Exchange& exchange, const Target& target);
  kj::Promise<void> list(Exchange& exchange, const Target& target);
  kj::Promise<void> watch(Exchange& exchange, Query query);
  kj::Promise<void> log(Exchange& exchange, const Target& target);
  kj::Promise<void> create(Exchange& exchange, const Target& target);
  kj::Promise<void> create_from(Exchange& exchange, const Target& target, const std::string& body);
  kj::Promise<void> remove(Exchange& exchange, const Target& target);
  kj::Promise<void> remove_by(Exchange& exchange, const Target& target, const std::string& body);
  kj::Promise<void> removed(Exchange& exchange, const Target& target, const std::string& uid);
  std::string random_uid();
  std::string random_suffix();

  StreamContext& context_;
  const View& view_;
  Backend& backend_;
  Renderer& renderer_;
  const ServerOptions& options_;
};

}  // namespace muster::api
