/** A part of the source whose tests are tried with faults in it. */
export interface Room {
  /** Folders and files, below `src`. */
  source: readonly string[];
  /** What is to notice, below `test` or `src`: few enough that a run takes minutes. */
  tests: readonly string[];
  /** A test of this room that takes longer hangs; a minute where absent. */
  hangsAfterMs?: number;
}

export const ROOMS: Readonly<Record<string, Room>> = {
  access: {
    source: ['features/access'],
    tests: [
      ...['access-reads', 'access-writes', 'cursor-readers', 'rate-limits', 'rules', 'user-sessions'].map(api),
      ...['field-rules', 'operators', 'operators-looking', 'operators-projects', 'rule-sets', 'rules-tools'].map(api),
      ...[
        'attacks/tokens',
        'console-session',
        'anonymous-users',
        'token-keys',
        'user-administration',
        'webhook-events',
      ].map(api),
      ...['end-sessions', 'ownership'].map((name) => `features/users/${name}`),
      'cli/rules',
      ...[
        'callers',
        'few-sets',
        'rates-of-routes',
        'read-access',
        'rule-bounds',
        'rule-meaning',
        'rule-values',
        'set-cache',
      ].map((name) => `features/access/${name}`),
    ],
  },
  sessions: {
    source: ['features/users/sessions'],
    tests: [
      ...['user-auth', 'user-sessions', 'refresh-cookie', 'step-up', 'second-factor', 'account-owners'].map(api),
      ...['end-sessions', 'login-lock', 'refresh-token'].map((name) => `features/users/${name}`),
    ],
  },
  codes: {
    source: ['features/users/codes'],
    tests: [
      ...[
        'user-codes',
        'code-login',
        'user-auth',
        'step-up',
        'account-owners',
        'anonymous-users',
        'passkeys',
        'second-factor',
      ].map(api),
      ...['mail-to-persons', 'ownership'].map((name) => `features/users/${name}`),
    ],
  },
  mail: {
    source: ['features/mail/sending'],
    tests: [
      ...['mail-send', 'mail-events', 'operators-dashboard'].map(api),
      'cli/mail-queued',
      ...['batch-fates', 'crashes', 'fates', 'provider-pace', 'provider-turns', 'turn-bounds'].map(
        (name) => `features/mail/${name}`,
      ),
      'features/users/mail-to-persons',
      'features/telemetry',
    ],
  },
  webhooks: {
    source: ['features/webhooks'],
    tests: [
      ...['webhooks', 'webhook-deliveries', 'webhook-events', 'webhook-settings'].map(api),
      'cli/webhook',
      ...[
        'dropped-deliveries',
        'earlier-states',
        'events',
        'kept-deliveries',
        'leftovers',
        'receivers',
        'runs',
        'stale-claims',
        'user-events',
      ].map((name) => `features/webhooks/${name}`),
    ],
  },
  jobs: {
    source: ['platform/jobs'],
    tests: [
      ...['claims', 'lease-watch', 'managing', 'queue', 'schedules', 'settling', 'stale-claims', 'wake'].map(
        (name) => `platform/jobs/${name}`,
      ),
      'features/telemetry',
    ],
    // Most faults of a queue make somebody wait for ever.
    hangsAfterMs: 5_000,
  },
  log: {
    source: ['engine/storage/log'],
    tests: ['src/engine/test/change-log', 'src/engine/test/commit-queue', 'api/changes', 'api/change-log-size'],
  },
};

function api(name: string): string {
  return `api/${name}`;
}
