import type { Archetype } from "../../../src/platform/browsers/archetypes.ts";

/** Brand and version in client hints. */
interface Brand {
  brand: string;
  version: string;
}

/** Client hints, sent as headers and shown in `navigator.userAgentData`. */
export interface ClientHints {
  brands: Brand[];
  fullVersionList: Brand[];
  platform: string;
  platformVersion: string;
  architecture: string;
  bitness: string;
  model: string;
  mobile: boolean;
  wow64: boolean;
  formFactors: string[];
}

/** Identity of a device as its headers and its `navigator` present it. */
export interface DeviceIdentity {
  readonly userAgent: string;
  readonly acceptLanguage: string;
  /** `navigator.platform`. */
  readonly platform: string;
  /** Absent for Safari and Firefox, which have no client hints. */
  readonly clientHints: ClientHints | undefined;
}

interface System {
  readonly mark: RegExp;
  readonly platform: string;
  /** Name in client hints. */
  readonly name: string;
  /** Processor architecture. Empty for phones and tablets. */
  readonly architecture: string;
  /** Word size of the processor in bits. Empty for phones and tablets. */
  readonly bitness: string;
}

/** Operating systems by user agent. The first match counts. */
const systems: readonly System[] = [
  { mark: /Windows/, platform: "Win32", name: "Windows", architecture: "x86", bitness: "64" },
  { mark: /Android ([\d.]+)/, platform: "Linux armv81", name: "Android", architecture: "", bitness: "" },
  { mark: /iPhone/, platform: "iPhone", name: "iOS", architecture: "", bitness: "" },
  { mark: /iPad/, platform: "iPad", name: "iOS", architecture: "", bitness: "" },
  { mark: /Mac OS X ([\d_.]+)/, platform: "MacIntel", name: "macOS", architecture: "x86", bitness: "64" },
];
const linux: System = { mark: /^/, platform: "Linux x86_64", name: "Linux", architecture: "x86", bitness: "64" };

/** Meaningless brand (GREASE) that Chromium adds, so that sites have to tolerate unknown brands. */
const greaseBrand: Brand = { brand: "Not:A-Brand", version: "8" };

/** Returns the user agent of an archetype, with the browser's real version if the user agent is Chromium-based. */
function userAgentOf(archetype: Archetype, major: number): string {
  const given = archetype.userAgent ?? desktopUserAgent(major);
  // Since version 101, Chromium reports only the major version.
  return given.replaceAll(/\b(Chrome|Edg)\/[\d.]+/g, `$1/${major}.0.0.0`);
}

export function makeIdentity(archetype: Archetype, browserVersion: string, locale: string): DeviceIdentity {
  const major = Number.parseInt(browserVersion, 10);
  const userAgent = userAgentOf(archetype, major);
  const system = systems.find(({ mark }) => mark.test(userAgent)) ?? linux;
  const isChromium = /\bChrome\//.test(userAgent);
  return {
    userAgent,
    acceptLanguage: locale,
    platform: system.platform,
    clientHints: isChromium ? hintsOf(userAgent, system, browserVersion) : undefined,
  };
}

function hintsOf(userAgent: string, system: System, fullVersion: string): ClientHints {
  const [major = ""] = fullVersion.split(".");
  const names = ["Chromium", ...(userAgent.includes("Edg/") ? ["Microsoft Edge"] : [])];
  const list = (version: string, grease: string) => [
    { ...greaseBrand, version: grease },
    ...names.map((brand) => ({ brand, version })),
  ];
  const isAndroid = system.name === "Android";
  const mobile = /\bMobile\b/.test(userAgent);
  return {
    brands: list(major, greaseBrand.version),
    fullVersionList: list(fullVersion, `${greaseBrand.version}.0.0.0`),
    platform: system.name,
    platformVersion: versionOf(userAgent, system),
    architecture: system.architecture,
    bitness: system.bitness,
    model: isAndroid ? (/Android [\d.]+; ([^;)]+?)(?: Build\/[^)]*)?[;)]/.exec(userAgent)?.[1] ?? "") : "",
    mobile,
    wow64: false,
    formFactors: [mobile ? "Mobile" : isAndroid ? "Tablet" : "Desktop"],
  };
}

/** Returns the version of the operating system as three numbers. Empty on Linux. */
function versionOf(userAgent: string, { name, mark }: System): string {
  if (name === "Linux") return "";
  const version = name === "Windows" ? "10" : (mark.exec(userAgent)?.[1] ?? "");
  const [major = "", minor = "0", patch = "0"] = version.split(/[._]/);
  return major === "" ? "" : `${major}.${minor}.${patch}`;
}

/** Returns the user agent of a Chromium on Linux that is not headless. */
function desktopUserAgent(major: number): string {
  return `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`;
}
