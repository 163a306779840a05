// Expected: what a muster coordinator sends for a request, so that no other server is believed.
//
// The method and the path of a request determine the kind of its answer, the object it is about,
// and whether it is JSON or text. ApiClient checks every answer here before anybody reads it; no
// verb has to. Pure.
//
// Each check returns what was met instead, as the rest of "it answered with ..."; nothing if the
// answer fits.
#pragma once

#include "client/connect/response.hpp"
#include "client/terminal/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

class Expected {
 public:
  // `body`: of the request; null: none.
  Expected(std::string_view method, const std::string& path, std::string_view accept,
           const std::string* body);

  // Checks the head of a successful answer. `beginning`: the first bytes of its body.
  std::optional<std::string> misfit_of_head(int status, const std::string& content_type,
                                            std::string_view beginning) const;
  // Checks a whole answer. Parses the body of a successful one, unless it is text.
  std::optional<std::string> misfit(Response& answer) const;
  // Checks a line of a watch. `cut_off`: the watch broke before the line ended, so that it may be
  // half an event.
  std::optional<std::string> misfit_of_event(std::string_view line, bool cut_off) const;

  bool is_watch() const { return watch_; }
  bool is_text() const { return form_ == Form::text; }
  // Whether the answer ends only when the object does, or never.
  bool endless() const { return endless_; }
  // Bytes of the longest answer.
  uint64_t size_max() const;

 private:
  enum class Form { any, one, list, table, success, deleted, text };

  void find_object(const std::vector<std::string>& path, std::string_view method,
                   std::string_view accept, const Json& body);
  void find_own(const std::vector<std::string>& path, std::string_view method, const Json& body);
  std::optional<std::string> misfit_of_object(const Json& json) const;
  std::optional<std::string> misfit_of_list(const Json& json) const;
  std::optional<std::string> misfit_of_table(const Json& json) const;
  std::optional<std::string> misfit_of_fields(const Json& json) const;
  std::optional<std::string> misfit_of_success(const Json& json) const;
  std::optional<std::string> misfit_of_metadata(const Json& metadata) const;
  std::optional<std::string> misfit_of_value(const Json& json) const;

  struct Field {
    enum class Type { text, mention, number, flag, texts } type;
    const char* name;
    std::string value{};  // of a text, or within it (mention); empty: any
  };

  Form form_ = Form::any;
  std::string kind_, version_;  // of an object, or of the items of a list; empty: none
  std::string name_, ns_;       // of one object; empty: not known
  std::string generated_from_;  // what the name begins with
  bool with_uid_ = false;       // objects of the kind always have one
  bool named_ = false;          // the items of a list have names
  bool watch_ = false, endless_ = false;
  bool cells_ = false;         // rows of a table may lack their objects
  std::vector<Field> fields_;  // of an object of muster's own group
};

// Text from outside, shortened, as it may be shown: "\"<html>...\"".
std::string shown_bytes(std::string_view text);

}  // namespace muster::cli
