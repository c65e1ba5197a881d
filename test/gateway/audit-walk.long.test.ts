import { walkAudit } from "./walk/audit-walk.ts";
import { methodsAt } from "./walk/methods.ts";

walkAudit(methodsAt);
