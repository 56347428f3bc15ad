import type { App } from '../world/app.js';
import type { RlsMode } from '../world/collections.js';
import type { Project } from '../world/projects.js';
import { signAccessToken } from '../world/users.js';

/**
 * Who asks. The user of the bearer token is always the same one; `mine` is a document of that user, `theirs` one of
 * another.
 */
export type KeyKind = 'publishable' | 'secret';
export type BearerKind = 'none' | 'user' | 'expired' | 'broken' | 'other project';

/** The token behind each kind of bearer, none as an empty text. */
export function signBearers(app: App, own: Project, other: Project, userId: string): Record<BearerKind, string> {
  return {
    none: '',
    user: signAccessToken(app, own, userId, 60_000),
    expired: signAccessToken(app, own, userId, -60_000),
    broken: 'x.y.z',
    'other project': signAccessToken(app, other, userId, 60_000),
  };
}

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

export type ReadOperation =
  | 'list'
  | 'list by cursor'
  | 'list with the trash'
  | 'filter by owner'
  | 'count'
  | 'get mine'
  | 'get theirs'
  | 'get my trash'
  | 'get my trash, asked for'
  | 'get their trash, asked for'
  | 'aggregate'
  | 'aggregate with the trash'
  | 'join'
  | 'union'
  | 'populate'
  | 'populate with the trash';

/** Titles of the documents that the reply shows, sorted; or a refusal. */
export type Visible = readonly string[] | readonly [number, string];

export interface ReadRow {
  rls: 'off' | RlsMode;
  key: KeyKind;
  bearers: readonly BearerKind[];
  outcomes: Record<ReadOperation, Visible>;
}

const NOT_FOUND: Visible = [404, 'DOCUMENT_NOT_FOUND'];
const ACTIVE = ['mine', 'theirs'];
const WITH_TRASH = ['mine', 'my trash', 'their trash', 'theirs'];

const READS_ALL: Record<ReadOperation, Visible> = {
  list: ACTIVE,
  'list by cursor': ACTIVE,
  'list with the trash': WITH_TRASH,
  'filter by owner': ['theirs'],
  count: ['2'],
  'get mine': ['mine'],
  'get theirs': ['theirs'],
  'get my trash': NOT_FOUND,
  'get my trash, asked for': ['my trash'],
  'get their trash, asked for': ['their trash'],
  aggregate: ACTIVE,
  'aggregate with the trash': WITH_TRASH,
  join: ACTIVE,
  union: ACTIVE,
  populate: ACTIVE,
  'populate with the trash': WITH_TRASH,
};

const READS_OWN: Record<ReadOperation, Visible> = {
  list: ['mine'],
  'list by cursor': ['mine'],
  'list with the trash': ['mine', 'my trash'],
  'filter by owner': [],
  count: ['1'],
  'get mine': ['mine'],
  'get theirs': NOT_FOUND,
  'get my trash': NOT_FOUND,
  'get my trash, asked for': ['my trash'],
  'get their trash, asked for': NOT_FOUND,
  aggregate: ['mine'],
  'aggregate with the trash': ['mine', 'my trash'],
  join: ['mine'],
  union: ['mine'],
  populate: ['mine'],
  'populate with the trash': ['mine', 'my trash'],
};

const readsNothing = (refusal: readonly [number, string]): Record<ReadOperation, Visible> =>
  Object.fromEntries(Object.keys(READS_ALL).map((operation) => [operation, refusal])) as Record<ReadOperation, Visible>;

/** Reads under every kind of key, bearer and row-level security (rest-api.md 5). */
export const READ_MATRIX: readonly ReadRow[] = [
  ...(['off', 'public-read'] as const).flatMap((rls): ReadRow[] => [
    { rls, key: 'publishable', bearers: ALL_BEARERS, outcomes: READS_ALL },
    { rls, key: 'secret', bearers: ALL_BEARERS, outcomes: READS_ALL },
  ]),
  { rls: 'private', key: 'publishable', bearers: ['none'], outcomes: readsNothing([401, 'AUTH_REQUIRED']) },
  { rls: 'private', key: 'publishable', bearers: ['expired'], outcomes: readsNothing([401, 'TOKEN_EXPIRED']) },
  {
    rls: 'private',
    key: 'publishable',
    bearers: ['broken', 'other project'],
    outcomes: readsNothing([401, 'TOKEN_INVALID']),
  },
  { rls: 'private', key: 'publishable', bearers: ['user'], outcomes: READS_OWN },
  { rls: 'private', key: 'secret', bearers: ALL_BEARERS, outcomes: READS_ALL },
];
