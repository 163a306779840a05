// RenderCache: recently rendered objects, shared by all watchers.
//
// A thousand watchers get the same change within a moment, and rendering costs more than copying.
// A text is identified by the object's version. Not cached: nodes, whose heartbeats have no
// version, tables, whose cells depend on the time, and removed objects. Bounded in bytes; the
// oldest text is dropped first.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/render/render.hpp"

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace muster::api {

// The event of a watch that has this object, which is encoded already.
void append_watch_event(std::string& out, std::string_view type, std::string_view object,
                        Encoding encoding);
// The JSON text of an object, encoded.
std::string encoded(std::string json, Encoding encoding);

class RenderCache {
 public:
  explicit RenderCache(Renderer& renderer) : renderer_(renderer) {}

  // Appends the event of a watch. `columns`: include the table's column definitions.
  void append_event(std::string& out, std::string_view type, const Shown& shown, Form form,
                    Encoding encoding, bool columns);

 private:
  static constexpr size_t kBytesMax = 8u << 20;
  // The object's version, and whether it is a summary.
  using Name = std::tuple<Key, uint64_t, Form, Encoding, bool>;

  std::string made(const Shown& shown, Form form, Encoding encoding, bool columns);
  const std::string& kept(const Shown& shown, Form form, Encoding encoding);

  Renderer& renderer_;
  std::map<Name, std::string> texts_;
  std::deque<Name> order_;
  size_t bytes_ = 0;
};

}  // namespace muster::api
