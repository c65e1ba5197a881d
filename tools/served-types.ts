// Prints, for `buf build`, an option for each service that is served.
import { features } from "../src/features.ts";

const services = features.flatMap(({ service = [] }) => service);
console.log(services.map(({ typeName }) => `--type ${typeName}`).join(" "));
