#include "core/job/facts/dependency.hpp"

#include <array>

namespace muster::core {
namespace {

constexpr std::array<std::string_view, 4> kEnds = {"succeeded", "failed", "deleted", "waived"};

}  // namespace

std::string_view name(DependencyEnd how) {
  return kEnds.at(static_cast<size_t>(how));
}

bool satisfies(DependencyEnd how, Needed needed) {
  switch (needed) {
    case Needed::ok:
      return how == DependencyEnd::succeeded || how == DependencyEnd::waived;
    case Needed::notok:
      return how != DependencyEnd::succeeded;
    case Needed::any:
    case Needed::each:
      return true;
  }
  return true;
}

}  // namespace muster::core
