import { methodsAt } from "./walk/methods.ts";
import { walkRegistry } from "./walk/registry-walk.ts";

walkRegistry(methodsAt);
