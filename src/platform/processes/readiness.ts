/** The state that a load balancer asks for before it sends requests: wanted or not. */
export interface Readiness {
  isReady(): boolean;
  /** Ends readiness for good. */
  end(): void;
}

export function openReadiness(): Readiness {
  let ready = true;
  return { isReady: () => ready, end: () => void (ready = false) };
}
