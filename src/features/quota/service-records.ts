import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { SCHEDULED_CALLS } from '../projects/own-code.js';

/** Records that the service keeps for a project beside its documents, all projects' in one stored collection. */
interface KeptRecords {
  store: string;
  /** What one takes at most, with its index entries and the job that it may have. */
  bytes: number;
}

const SERVICE_RECORDS = {
  sessions: { store: 'sessions', bytes: 1_024 },
  oneTimeTokens: { store: 'one_time_tokens', bytes: 1_024 },
  codes: { store: 'one_time_codes', bytes: 1_024 },
  counters: { store: 'counters', bytes: 1_536 },
  socialIdentities: { store: 'social_identities', bytes: 512 },
  passkeys: { store: 'passkeys', bytes: 1_024 },
  invites: { store: 'invites', bytes: 2_048 },
  tokenCutoffs: { store: 'token_cutoffs', bytes: 256 },
  mailLogs: { store: 'mail_logs', bytes: 2_048 },
  files: { store: 'files', bytes: 1_024 },
} satisfies Record<string, KeptRecords>;

export type ServiceRecord = keyof typeof SERVICE_RECORDS;

/** Answers for repeated requests, mails and calls that wait say how much room they take: one of these. */
const SIZES = [512, 2_048, 16_384, 65_536, 262_144, 1_048_576, 4_194_304] as const;
const WAITING_MAILS = SERVICE_RECORDS.mailLogs.store;
export const REPEATED_REQUESTS = 'idempotency_keys';

/** What a kept record counts for. */
export function serviceRecordBytes(record: ServiceRecord): number {
  return SERVICE_RECORDS[record].bytes;
}

/** The stored collection of a kind. */
export function storeOfServiceRecord(record: ServiceRecord): string {
  return SERVICE_RECORDS[record].store;
}

/** The size as which a record of a number of bytes counts. */
export function sizeClass(bytes: number): number {
  return SIZES.find((size) => bytes <= size) ?? bytes;
}

/** The bytes of what is kept for a project beside its documents and logs: counted by indexes, so none is read. */
export async function countServiceRecords(app: Pick<App, 'db'>, projectId: ObjectId): Promise<number> {
  const count = async (store: string, filter: object, bytes: number): Promise<number> =>
    (await app.db.collection(store).countDocuments({ projectId, ...filter })) * bytes;
  const counted = await Promise.all([
    ...Object.values(SERVICE_RECORDS).map(({ store, bytes }) => count(store, {}, bytes)),
    ...SIZES.flatMap((size) =>
      [REPEATED_REQUESTS, WAITING_MAILS, SCHEDULED_CALLS].map((store) => count(store, { size }, size)),
    ),
  ]);
  return counted.reduce((sum, bytes) => sum + bytes, 0);
}
