import type { App } from '../../src/app.js';
import { parseDuration } from '../../src/config/setting-readers.js';
import { type NewKey, createKey, revokeKey, rotateKey } from '../../src/features/projects/manage-keys.js';
import { presentKey } from '../../src/features/projects/project-store.js';
import { KEY_TYPES, type KeyType } from '../../src/features/projects/project.js';
import { chooseProject, defineProjectCommand, projectOption } from '../ask/choose.js';
import { argument, choice, defineCommand, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import type { Result } from '../view/output.js';
import { presentList } from '../view/present.js';

/** The type given, or the one that the person picks. */
async function chooseKeyType(context: Context, given: KeyType | undefined): Promise<KeyType> {
  return (
    given ??
    context.ask.choose<KeyType>('Which type of key?', 'Add --type publishable or --type secret', [
      { name: 'publishable', value: 'publishable', description: 'may be in a browser or an app' },
      { name: 'secret', value: 'secret', description: 'for your servers only' },
    ])
  );
}

/** A key at the only moment when its value can be shown. */
function presentNewKey(app: App, { key, value }: NewKey, more: string[] = []): Result {
  const shown = presentKey(key, app.clock.now());
  return {
    json: { key: shown, value },
    quiet: value,
    text: () =>
      [`New ${shown.type} key ${shown.id}:`, '', `  ${value}`, '', 'It is shown this once.', ...more].join('\n'),
  };
}

const list = defineProjectCommand({
  examples: ['bsvc key list --project shop', 'bsvc key list --project shop --json'],
  run(context, { app, project }) {
    const keys = project.keys.map((key) => presentKey(key, app.clock.now()));
    return presentList(keys, {
      name: ({ id }) => id,
      empty: 'No keys. Create one with: bsvc key create --type secret',
      head: ['id', 'type', 'ends in', 'state', 'until', 'name', 'last used'],
      row: (key) => [key.id, key.type, key.last4, ...presentState(key), key.name ?? '', key.lastUsedAt ?? 'never'],
    });
  },
});

/** The state of a key, and the moment at which it ends or has ended. */
function presentState({ live, revokedAt, expiresAt }: ReturnType<typeof presentKey>): [string, string | null] {
  if (revokedAt) return ['revoked', revokedAt];
  return [live ? 'active' : 'ended', expiresAt ?? null];
}

const create = defineCommand({
  examples: [
    "bsvc key create --project shop --type secret --name 'nightly import'",
    'KEY=$(bsvc key create --project shop --type secret --quiet)',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    type: choice('--type <type>', 'for browsers (publishable) or for servers (secret)', KEY_TYPES),
    name: option('--name <name>', 'name to identify the key'),
  },
  async run(context, input) {
    const type = await chooseKeyType(context, input.type);
    const { app, project } = await chooseProject(context, input.project);
    return presentNewKey(app, await createKey(app, project, type, input.name));
  },
});

const DEFAULT_GRACE = '24h';

const rotate = defineCommand({
  details: `All older keys of the type keep working for the grace period (default ${DEFAULT_GRACE}), so that clients can switch. --grace 0s revokes them immediately.`,
  examples: [
    'bsvc key rotate --project shop --type secret',
    'bsvc key rotate --project shop --type publishable --grace 7d --quiet',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    type: choice('--type <type>', 'which keys to replace', KEY_TYPES),
    grace: option('--grace <duration>', 'how long the old keys keep working', (text) => ({
      text,
      ms: parseDuration(text),
    })),
  },
  async run(context, input) {
    const type = await chooseKeyType(context, input.type);
    const grace = input.grace ?? { text: DEFAULT_GRACE, ms: parseDuration(DEFAULT_GRACE) };
    const { app, project } = await chooseProject(context, input.project);
    const old =
      grace.ms === 0
        ? 'The older ones no longer work.'
        : `The older ones go on working for ${grace.text}. One that has leaked ends at once with "bsvc key revoke <id>".`;
    return presentNewKey(app, await rotateKey(app, project, type, grace.ms), [old]);
  },
});

const revoke = defineProjectCommand({
  details: 'Takes effect in every process within a second. To switch without downtime, use "bsvc key rotate".',
  examples: ['bsvc key revoke 665f1c2e9b1d8a0012ab34cd --project shop --yes', 'bsvc key list --project shop'],
  audited: true,
  destroys: ({ keyId }) => ({ what: 'Clients that use this key will be refused at once.', name: keyId }),
  parameters: { keyId: argument('keyId', 'id of the key ("bsvc key list" shows them)') },
  async run(_context, { app, project, keyId }) {
    const key = presentKey(await revokeKey(app, project, keyId), app.clock.now());
    return { json: { key }, quiet: key.id, text: () => `Key ${key.id} (${key.type}, …${key.last4}) is revoked.` };
  },
});

export default { list, create, rotate, revoke };
