/** Whether this process wants new requests; a load balancer asks before it sends any. */
export interface Readiness {
  isReady(): boolean;
  /** From now on it does not; there is no way back. */
  end(): void;
}

export function openReadiness(): Readiness {
  let ready = true;
  return { isReady: () => ready, end: () => void (ready = false) };
}
