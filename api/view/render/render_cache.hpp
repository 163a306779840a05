// RenderCache: recently rendered objects, shared by all watchers.
//
// A thousand watchers get the same change within a moment, and rendering costs more than copying.
// A text is identified by the object's version and the version written into it, which may differ in
// a watch (watch.hpp). Not cached: nodes, whose passing changes have no version, and tables, whose
// cells depend on the time. Bounded in bytes; the oldest text is dropped first.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/render/render.hpp"

#include <deque>
#include <map>
#include <string>
#include <tuple>

namespace muster::api {

class RenderCache {
 public:
  explicit RenderCache(Renderer& renderer) : renderer_(renderer) {}

  // Appends the object in this form. `columns`: include the table's column definitions.
  void append(std::string& out, const Shown& shown, Form form, bool columns);

 private:
  static constexpr size_t kBytesMax = 8u << 20;
  // The object's own version, the one in the text, and whether it is a summary.
  using Name = std::tuple<Key, uint64_t, uint64_t, Form, bool>;

  Renderer& renderer_;
  std::map<Name, std::string> texts_;
  std::deque<Name> order_;
  size_t bytes_ = 0;
};

}  // namespace muster::api
