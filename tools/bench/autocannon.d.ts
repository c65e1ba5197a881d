declare module "autocannon" {
  /** What is sent, and how much of it. */
  interface Load {
    readonly url: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly connections: number;
    readonly amount: number;
  }

  /** What came of it. */
  interface Outcome {
    readonly "2xx": number;
    readonly non2xx: number;
    readonly errors: number;
    readonly duration: number;
  }

  /** Sends requests over kept connections, as many at once as there are connections. */
  export default function autocannon(load: Load): Promise<Outcome>;
}
