import type { RlsMode } from '../../src/features/collections/collection.js';

/** Who asks. The user of the bearer token is always the same one; `mine` is a document of that user, `theirs` one of another. */
export type KeyKind = 'publishable' | 'secret';
export type BearerKind = 'none' | 'user' | 'expired' | 'broken' | 'other project';

export type WriteOperation =
  | 'insert'
  | 'insert as the user'
  | 'insert as another'
  | 'bulk insert'
  | 'bulk insert, one as another'
  | 'change mine'
  | 'change theirs'
  | 'change the owner'
  | 'trash mine'
  | 'trash theirs'
  | 'delete mine'
  | 'delete theirs'
  | 'recover mine'
  | 'recover theirs';

/** Status, and the code of a refusal. */
export type Outcome = number | readonly [number, string];

export interface WriteRow {
  rls: 'off' | RlsMode;
  key: KeyKind;
  bearers: readonly BearerKind[];
  outcomes: Record<WriteOperation, Outcome>;
}

const ALL_BEARERS = ['none', 'user', 'expired', 'broken', 'other project'] as const;

const everything = (outcome: Outcome): Record<WriteOperation, Outcome> => ({
  insert: outcome,
  'insert as the user': outcome,
  'insert as another': outcome,
  'bulk insert': outcome,
  'bulk insert, one as another': outcome,
  'change mine': outcome,
  'change theirs': outcome,
  'change the owner': outcome,
  'trash mine': outcome,
  'trash theirs': outcome,
  'delete mine': outcome,
  'delete theirs': outcome,
  'recover mine': outcome,
  'recover theirs': outcome,
});

const ALLOWED: Record<WriteOperation, Outcome> = {
  ...everything(200),
  insert: 201,
  'insert as the user': 201,
  'insert as another': 201,
  'bulk insert': 201,
  'bulk insert, one as another': 201,
};

const IMMUTABLE: Outcome = [403, 'OWNER_IMMUTABLE'];
const MISMATCH: Outcome = [403, 'OWNER_MISMATCH'];

const OWN_ONLY: Record<WriteOperation, Outcome> = {
  ...ALLOWED,
  'insert as another': MISMATCH,
  'bulk insert, one as another': MISMATCH,
  'change theirs': MISMATCH,
  'change the owner': IMMUTABLE,
  'trash theirs': MISMATCH,
  'delete theirs': MISMATCH,
  'recover theirs': MISMATCH,
};

/** Writes under every kind of key, bearer and row-level security (rest-api.md 5). */
export const WRITE_MATRIX: readonly WriteRow[] = [
  { rls: 'off', key: 'publishable', bearers: ALL_BEARERS, outcomes: everything([403, 'WRITE_BLOCKED']) },
  { rls: 'off', key: 'secret', bearers: ALL_BEARERS, outcomes: ALLOWED },
  ...(['public-read', 'private'] as const).flatMap((rls): WriteRow[] => [
    { rls, key: 'publishable', bearers: ['none'], outcomes: everything([401, 'AUTH_REQUIRED']) },
    { rls, key: 'publishable', bearers: ['expired'], outcomes: everything([401, 'TOKEN_EXPIRED']) },
    { rls, key: 'publishable', bearers: ['broken', 'other project'], outcomes: everything([401, 'TOKEN_INVALID']) },
    { rls, key: 'publishable', bearers: ['user'], outcomes: OWN_ONLY },
    { rls, key: 'secret', bearers: ALL_BEARERS, outcomes: { ...ALLOWED, 'change the owner': IMMUTABLE } },
  ]),
];
