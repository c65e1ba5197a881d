declare module "autocannon" {
  /** Requests to send. */
  interface Load {
    readonly url: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly connections: number;
    readonly amount: number;
  }

  /** Results of a run. */
  interface Outcome {
    readonly "2xx": number;
    readonly non2xx: number;
    readonly errors: number;
    readonly duration: number;
  }

  /** Sends requests over keep-alive connections, one at a time per connection. */
  export default function autocannon(load: Load): Promise<Outcome>;
}
