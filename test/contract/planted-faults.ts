/** Contract that breaks one rule, and the expected faults. */
interface PlantedFault {
  /** Proto source after the package and imports. */
  readonly source: string;
  /** Substrings of all expected faults, in order. */
  readonly faults: readonly string[];
}

const service = (...methods: readonly string[]) => `service PlantedService {\n${methods.join("\n")}\n}\n`;
const rpc = (name: string, ...options: readonly string[]) =>
  `rpc ${name}(Thing) returns (Thing) { ${options.map((option) => `option ${option};`).join(" ")} }`;
const thing = "message Thing { string id = 1; optional string name = 2; repeated string names = 3; }\n";
const get = (path: string) => `(google.api.http) = {get: "${path}"}`;
const post = (path: string) => `(google.api.http) = {post: "${path}" body: "*"}`;
const safe = "idempotency_level = NO_SIDE_EFFECTS";

/** Contracts by the rule that must refuse them. */
export const plantedFaults = {
  oneRoute: {
    source: `${thing}${service(
      rpc("NoDoor"),
      rpc("TwoDoors", post("/v1/two"), '(pilothouse.v1.rules) = {websocket: "/v1/two"}'),
      'rpc Silent(stream Thing) returns (stream Thing) { option (google.api.http) = {get: "/v1/silent"}; }',
      rpc("Whole", post("/v1/whole"), '(pilothouse.v1.rules) = {streamed_by: "Parts"}'),
      'rpc Parts(Thing) returns (stream Thing) { option (google.api.http) = {get: "/v1/parts"}; }',
    )}`,
    faults: ["NoDoor: needs an http", "TwoDoors: needs an http", "Silent: needs a websocket", "Parts: needs no http"],
  },
  bodies: {
    source: `${thing}${service(
      rpc("GetWithBody", '(google.api.http) = {get: "/v1/a" body: "*"}'),
      rpc("DeleteWithBody", '(google.api.http) = {delete: "/v1/a" body: "*"}'),
      rpc("PostWithout", '(google.api.http) = {post: "/v1/a"}'),
      rpc("PutField", '(google.api.http) = {put: "/v1/a" body: "name"}'),
    )}`,
    faults: ["GetWithBody: GET", "DeleteWithBody: DELETE", "PostWithout: POST", "PutField: PUT"],
  },
  sideEffects: {
    source: `${thing}${service(
      rpc("GetUnmarked", get("/v1/a")),
      rpc("PostMarked", post("/v1/a"), safe),
      rpc("Confirm", get("/v1/status/subscribe/confirm"), safe),
      `rpc Watch(Thing) returns (stream Thing) { option ${get("/v1/b")}; option ${safe}; }`,
    )}`,
    faults: ["GetUnmarked: ", "PostMarked: ", "Confirm: idempotency_level is not IDEMPOTENT", "Watch: "],
  },
  pathVariables: {
    source: `${thing}${service(
      rpc("Unknown", get("/v1/{thing_id}")),
      rpc("Maybe", get("/v1/maybe/{name}")),
      rpc("Many", get("/v1/many/{names}")),
      'rpc Talk(stream Thing) returns (stream Thing) { option (pilothouse.v1.rules) = {websocket: "/v1/{talk_id}"}; }',
    )}`,
    faults: ["Unknown: {thing_id}", "Maybe: {name}", "Many: {names}", "Talk: {talk_id}"],
  },
  distinctRoutes: {
    source: `${thing}${service(rpc("First", get("/v1/a/{id}")), rpc("Second", get("/v1/a/{name}")))}`,
    faults: ["Second: has the route of First"],
  },
  knownScopes: {
    source: `${thing}${service(
      rpc("Unknown", '(pilothouse.v1.rules) = {scope: "sessions:admin"}'),
      rpc("Open", '(pilothouse.v1.rules) = {public: true scope: "sessions:read"}'),
      rpc("OpenStep", "(pilothouse.v1.rules) = {public: true step_up: true}"),
    )}`,
    faults: ["Unknown: scope sessions:admin", "Open: is public", "OpenStep: is public"],
  },
  knownBuckets: {
    source: `${thing}${service(
      rpc("Unknown", '(pilothouse.v1.rules) = {buckets: ["sessions:navigate"]}'),
      rpc("Misplaced", post("/v1/a"), '(pilothouse.v1.rules) = {buckets: ["sessions:create"]}'),
      rpc("Forgotten", post("/v1/sessions")),
    )}`,
    faults: ["Unknown: bucket sessions:navigate", "Misplaced: buckets are", "Forgotten: buckets are"],
  },
  knownErrors: {
    source: `${thing}${service(
      rpc("Unknown", '(pilothouse.v1.rules) = {errors: ["not-there"]}'),
      rpc("Twice", '(pilothouse.v1.rules) = {errors: ["conflict", "conflict"]}'),
    )}`,
    faults: ["Unknown: slug not-there", "Twice: names"],
  },
  idempotencyConflicts: {
    source: `${thing}${service(
      rpc("Keeps", post("/v1/a")),
      rpc("Ignores", post("/v1/b"), "(pilothouse.v1.rules) = {idempotency: IDEMPOTENCY_IGNORED}"),
      rpc("Told", post("/v1/c"), '(pilothouse.v1.rules) = {errors: ["conflict"]}'),
    )}`,
    faults: ["Keeps: keeps answers"],
  },
  stepUps: {
    source: `${thing}${service(
      rpc("Forgotten", post("/v1/api-keys")),
      rpc("Needless", post("/v1/a"), "(pilothouse.v1.rules) = {step_up: true}"),
      rpc("Untold", post("/v1/billing/portal-session"), "(pilothouse.v1.rules) = {step_up: true}"),
    )}`,
    faults: ["Forgotten: step_up is false", "Needless: step_up is true", "Untold: step_up and"],
  },
  beforeAcceptance: {
    source: `${thing}${service(
      rpc("Forgotten", post("/v1/legal/accept")),
      rpc("TooMuch", get("/v1/account/me/byok-llm-key"), "(pilothouse.v1.rules) = {before_legal_acceptance: true}"),
    )}`,
    faults: ["Forgotten: before", "TooMuch: before"],
  },
  successStatus: {
    source: `${thing}${service(
      "rpc Silent(Thing) returns (google.protobuf.Empty);",
      rpc("Talking", "(pilothouse.v1.rules) = {success_status: 204}"),
      rpc("Moved", "(pilothouse.v1.rules) = {success_status: 301}"),
      rpc("Sent", post("/v1/a"), "(pilothouse.v1.rules) = {created_status: 201}"),
    )}`,
    faults: ["Silent: answers Empty with status 0", "Talking: ", "Moved: ", "Sent: "],
  },
  kindIsFree: {
    source: "message Tap { string kind = 1; }\nmessage Do { oneof action { Tap tap = 1; string text = 2; } }\n",
    faults: ["Do.tap: ", "Do.text: "],
  },
  enumZeros: {
    source: "enum Colour { COLOUR_RED = 0; }\nmessage Box { enum Size { SIZE_SMALL = 0; } }\n",
    faults: ["Colour: ", "Size: "],
  },
  timestampNames: {
    source: `message Thing {
      google.protobuf.Timestamp created = 1;
      string ended_at = 2;
      google.protobuf.Timestamp format = 3;
      google.protobuf.Timestamp at = 4;
    }`,
    faults: ["Thing.created: ", "Thing.ended_at: ", "Thing.format: "],
  },
  comments: {
    source: `
    service Bare { rpc Call(Thing) returns (Thing); }

    message Thing {
      string name = 1;
      // todo
      string half = 2;
      oneof choice {
        // A member.
        Thing one = 3;
      }
    }

    enum Size {
      SIZE_UNSPECIFIED = 0;
      SIZE_SMALL = 1;
    }`,
    faults: ["service", "Bare.Call: ", "message", "choice", "Thing.name: ", "Thing.half: ", "enum", "SIZE_SMALL"],
  },
  lists: {
    source: `
    message ListThingsRequest { uint32 limit = 1; }
    message ListThingsResponse { repeated string data = 1; bool has_more = 2; optional string next_cursor = 3; }
    message ReadRequest { uint32 limit = 1; string cursor = 2; }
    message ReadResponse { repeated string data = 1; bool has_more = 2; optional string next_cursor = 3; }
    ${service(
      "rpc List(ListThingsRequest) returns (ListThingsResponse);",
      "rpc Read(ReadRequest) returns (ReadResponse);",
    )}`,
    faults: ["List: ", "Read: "],
  },
  updateMasks: {
    source: `${thing}message Patch { google.protobuf.FieldMask update_mask = 1; string id = 2; }
    message Put { string id = 1; google.protobuf.FieldMask update_mask = 2; }
    ${service(
      rpc("Without", '(google.api.http) = {patch: "/v1/a" body: "*"}'),
      'rpc NotLast(Patch) returns (Thing) { option (google.api.http) = {patch: "/v1/b" body: "*"}; }',
      'rpc NotPatch(Put) returns (Thing) { option (google.api.http) = {put: "/v1/c" body: "*"}; }',
    )}`,
    faults: ["Without: ", "NotLast: ", "NotPatch: "],
  },
  secrets: {
    source: "message Thing { string client_secret = 1; string password = 2; string token = 3 [debug_redact = true]; }",
    faults: ["Thing.client_secret: ", "Thing.password: "],
  },
  filePackages: {
    source: 'option java_outer_classname = "Planted"; message Thing { string id = 1; }',
    faults: ["planted/filePackages: "],
  },
  absences: {
    source: `enum Size { SIZE_UNSPECIFIED = 0; }
    message Thing {
      // Size. Absent if unknown.
      Size size = 1;
      // Other size. Absent if unknown.
      optional Size other_size = 2;
      // Whole thing. 0 or absent: none.
      uint32 whole = 3;
    }`,
    faults: ["Thing.size: "],
  },
  requestBounds: {
    source: `
    enum Size { SIZE_UNSPECIFIED = 0; }
    message Request {
      string text = 1;
      bytes data = 2 [(buf.validate.field).bytes.min_len = 1];
      repeated string texts = 3 [(buf.validate.field).repeated.max_items = 3];
      repeated uint32 numbers = 4;
      map<string, string> labels = 5 [(buf.validate.field).map = {max_pairs: 3 keys: {string: {max_len: 3}}}];
      map<string, uint32> counts = 6 [(buf.validate.field).map = {max_pairs: 3}];
      Size size = 7;
      google.protobuf.FieldMask mask = 8;
      google.protobuf.Struct anything = 9;
      Inner inner = 10;
      string bounded = 11 [(buf.validate.field).string.max_len = 3];
    }
    message Inner { string deep = 1; Inner again = 2; }
    message Answer { string unbounded = 1; }
    ${service("rpc Call(Request) returns (Answer);")}`,
    faults: [
      "Request.text: has no max_len",
      "Request.data: has no max_len",
      "Request.texts: its items have no max_len",
      "Request.numbers: has no max_items",
      "Request.labels: its values have no max_len",
      "Request.counts: its keys have no max_len",
      "Request.size: has no defined_only",
      "Request.mask: does not say",
      "Request.anything: has no bound",
      "Inner.deep: has no max_len",
    ],
  },
} as const satisfies Record<string, PlantedFault>;
