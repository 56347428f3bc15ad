/**
 * A way in which somebody proved to be the user (accounts.md 2): the password, a mailed code, a sign-in provider, an
 * authenticator app, a recovery code, a passkey; of a guest nothing but having come (`anon`).
 */
export const PROOF_METHODS = ['pwd', 'otp', 'social', 'totp', 'recovery', 'passkey', 'anon'] as const;
export type ProofMethod = (typeof PROOF_METHODS)[number];

/** The proof that opens a session. */
export interface Proof {
  method: ProofMethod;
  /** The second factor, where one was asked for. */
  second?: ProofMethod;
  /** The linked identity, of `social`. */
  identity?: string;
}

export const BY_PASSWORD: Proof = { method: 'pwd' };

/** The part of a session's record that holds its proofs. */
interface NotedProof {
  amr?: readonly ProofMethod[];
  authAt?: Date;
  createdAt: Date;
}

/** What a session rests on; of one from before proofs were noted, and of one by password alone, nothing is stored. */
export interface SessionProof {
  amr: readonly ProofMethod[];
  /** The moment of the last proof. */
  authAt: Date;
}

/** The proofs of a session. */
export function proofOf({ amr = ['pwd'], authAt, createdAt }: NotedProof): SessionProof {
  return { amr, authAt: authAt ?? createdAt };
}
