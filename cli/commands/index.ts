import type { CommandEntry, CommandNode } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

const command = (name: string, summary: string, load: CommandEntry['load']): CommandEntry => ({ name, summary, load });

/** Every command of bsvc. Modules are imported when they run, so that `bsvc --help` starts at once. */
export const COMMANDS: readonly CommandNode[] = [
  command('serve', 'run the API server, with the background worker inside', () => import('./serve.js')),
  command('worker', 'run background jobs and schedules only', () => import('./worker.js')),
  command('doctor', 'check settings, storage and dependencies, and say what to do', () => import('./doctor.js')),
  command('repair', 'save what is whole of a damaged store', () => import('./repair.js')),
  command('settings', 'list every setting, its value and where it came from', () => import('./settings.js')),
  {
    name: 'migrate',
    summary: 'bring stored data up to this version',
    examples: ['bsvc migrate status', 'bsvc migrate', 'bsvc migrate up --dry-run'],
    fallback: 'up',
    commands: [
      command('up', 'run pending migrations', () => import('./migrate/up.js')),
      command('status', 'list applied and pending migrations', () => import('./migrate/status.js')),
    ],
  },
  {
    name: 'project',
    summary: 'projects: one per application',
    examples: ['bsvc project create shop', 'bsvc project list', 'bsvc project update shop --plan pro'],
    commands: [
      command('create', 'create a project with its first keys', () => import('./project/create.js')),
      command('list', 'list projects', () => import('./project/list.js')),
      command('show', 'show one project', () => import('./project/show.js')),
      command('update', 'change name, plan, allowed domains or limits', () => import('./project/update.js')),
      command('export', 'write the bsvc.yaml of a running project', () => import('./project/export.js')),
      command('delete', 'delete a project and everything in it', () => import('./project/delete.js')),
      command('usage', 'show what a project uses of its limits', () => import('./project/usage.js')),
      command('recount', 'recount what counts towards the quotas', () => import('./project/recount.js')),
    ],
  },
  {
    name: 'key',
    summary: 'API keys of a project',
    examples: ['bsvc key list --project shop', 'bsvc key rotate --project shop --type secret --grace 24h'],
    commands: [
      command('list', 'list keys by id and last characters', () => import('./key/list.js')),
      command('create', 'create a further key, shown once', () => import('./key/create.js')),
      command('rotate', 'create a new key and let the old ones end', () => import('./key/rotate.js')),
      command('revoke', 'end a key at once', () => import('./key/revoke.js')),
    ],
  },
  {
    name: 'collection',
    summary: 'collections of a project: fields, rules, access',
    examples: [
      'bsvc collection add posts --project shop --field title:String! --field views:Number=0',
      'bsvc collection rls posts --project shop --mode public-read',
      'bsvc collection list --project shop',
    ],
    commands: [
      command('add', 'register a collection', () => import('./collection/add.js')),
      command('list', 'list collections', () => import('./collection/list.js')),
      command('show', 'show fields and rules of a collection', () => import('./collection/show.js')),
      command('edit', 'add, change or drop fields', () => import('./collection/edit.js')),
      command('rls', 'set or switch off row-level security', () => import('./collection/rls.js')),
      command('rules', 'say who may read, create, update and delete what', () => import('./collection/rules.js')),
      command('changes', 'keep changes for those who follow them, or not', () => import('./collection/changes.js')),
      command('rename', 'rename a collection', () => import('./collection/rename.js')),
      command('drop', 'drop a collection and its documents', () => import('./collection/drop.js')),
    ],
  },
  {
    name: 'schema',
    summary: 'all collections of a project as one file',
    examples: [
      'bsvc schema export --project shop --out schema.json',
      'bsvc schema apply schema.json --project shop --dry-run',
    ],
    commands: [
      command('export', 'write the collections of a project as JSON', () => import('./schema/export.js')),
      command('apply', 'make the collections of a project match a file', () => import('./schema/apply.js')),
    ],
  },
  {
    name: 'rules',
    summary: 'access rules: check them, explain them, test them',
    examples: ['bsvc rules check --project board --data', 'bsvc rules test rules.test.yaml'],
    commands: [
      command('check', 'look for what is wrong with the rules of a project', () => import('./rules/check.js')),
      command('explain', 'show what rules come to for a user, and why', () => import('./rules/explain.js')),
      command('test', 'try a declaration’s rules with users and documents of a file', () => import('./rules/test.js')),
    ],
  },
  {
    name: 'generate',
    summary: 'files for an app: types, API document, client',
    examples: ['bsvc generate types --project shop --key publishable --out src/bsvc.d.ts'],
    commands: [
      command(
        'types',
        'write the collections of a project as TypeScript types',
        () => import('./generate/project-types.js'),
      ),
      command('openapi', 'write the API document of a project', () => import('./generate/openapi.js')),
      command('client', 'write the client as a package to commit', () => import('./generate/client.js')),
    ],
  },
  {
    name: 'data',
    summary: 'documents: bulk import, export, queries',
    examples: [
      'bsvc data import posts posts.ndjson --project shop',
      'bsvc data query posts --project shop --filter status=live --limit 5',
    ],
    commands: [
      command('import', 'import documents from a file or another service', () => import('./data/import.js')),
      command('export', 'export documents as NDJSON, JSON or CSV', () => import('./data/export.js')),
      command('query', 'list documents', () => import('./data/query.js')),
      command('watch', 'follow the changes of a collection', () => import('./data/watch.js')),
      command('get', 'show one document', () => import('./data/get.js')),
      command('aggregate', 'run an aggregation pipeline', () => import('./data/aggregate.js')),
      command('insert', 'store one document', () => import('./data/insert.js')),
      command('change', 'change fields of a document', () => import('./data/change.js')),
      command('trash', 'move a document to the trash', () => import('./data/trash.js')),
      command('recover', 'take a document back from the trash', () => import('./data/recover.js')),
      command('change-matching', 'change all documents that match', () => import('./data/change-matching.js')),
      command('trash-matching', 'move all documents that match to the trash', () => import('./data/trash-matching.js')),
      command('batch', 'carry out several writes, all or none', () => import('./data/batch.js')),
      command('erase', 'delete all data of a user for good', () => import('./data/erase.js')),
    ],
  },
  {
    name: 'user',
    summary: 'end users of a project',
    examples: [
      'bsvc user create --project shop --email ann@example.com',
      'bsvc user list --project shop',
      'bsvc user disable ann@example.com --project shop',
    ],
    commands: [
      command('list', 'list users', () => import('./user/list.js')),
      command('create', 'create an account', () => import('./user/create.js')),
      command('import', 'take over users of another service', () => import('./user/import.js')),
      command('set-password', 'give a user another password', () => import('./user/set-password.js')),
      command('disable', 'close an account', () => import('./user/disable.js')),
      command('enable', 'open a closed account again', () => import('./user/enable.js')),
      command(
        'identities',
        'list the identities at sign-in providers that open an account',
        () => import('./user/identities.js'),
      ),
      command('invite', 'invite an address by mail', () => import('./user/invite.js')),
      command('roles', 'show or change the roles of a user', () => import('./user/roles.js')),
      command('mfa', 'show or reset the second factor of a user', () => import('./user/mfa.js')),
      command('sessions', 'show or end where a user is signed in', () => import('./user/sessions.js')),
      command('delete', 'delete an account', () => import('./user/delete.js')),
      {
        name: 'social',
        summary: 'sign-in through Google, GitHub or another provider',
        examples: ['bsvc user social list --project shop', 'bsvc user social remove github --project shop'],
        commands: [
          command('list', 'list providers', () => import('./user/social/list.js')),
          command('set', 'add a provider or change it', () => import('./user/social/set.js')),
          command('remove', 'remove a provider', () => import('./user/social/remove.js')),
        ],
      },
    ],
  },
  {
    name: 'mail',
    summary: 'mail of a project: test, logs, outbox, templates',
    examples: [
      'bsvc mail test --project shop --to me@example.com',
      'bsvc mail outbox',
      'bsvc mail template list --project shop',
    ],
    commands: [
      command('test', 'send a test mail', () => import('./mail/test.js')),
      command('logs', 'list the latest mails', () => import('./mail/logs.js')),
      command('outbox', 'show mails that were kept instead of sent', () => import('./mail/outbox.js')),
      {
        name: 'template',
        summary: 'templates of a project',
        examples: ['bsvc mail template set welcome --project shop --subject "Hello {{name}}" --text welcome.txt'],
        commands: [
          command('list', 'list templates', () => import('./mail/template/list.js')),
          command('show', 'show one template', () => import('./mail/template/show.js')),
          command('set', 'store or replace a template', () => import('./mail/template/set.js')),
          command('remove', 'remove a template of the project', () => import('./mail/template/remove.js')),
        ],
      },
    ],
  },
  {
    name: 'byok',
    summary: 'a project’s own provider accounts',
    examples: ['bsvc byok set --project shop --mail-key-stdin < key.txt', 'bsvc byok show --project shop'],
    commands: [
      command('set', 'store the project’s own mail provider key', () => import('./byok/set.js')),
      command('webhook-secret', 'store the secret of the provider’s events', () => import('./byok/webhook-secret.js')),
      command('show', 'show what is set, masked', () => import('./byok/show.js')),
      command('clear', 'forget the key', () => import('./byok/clear.js')),
      {
        name: 'bucket',
        summary: 'a project’s own bucket for files',
        examples: ['bsvc byok bucket show --project shop', 'bsvc byok bucket check --project shop'],
        commands: [
          command('set', 'make new files go to the project’s own bucket', () => import('./byok/bucket/set.js')),
          command('show', 'show the bucket, masked', () => import('./byok/bucket/show.js')),
          command('clear', 'stop using the bucket', () => import('./byok/bucket/clear.js')),
          command('cors', 'let browsers upload to the bucket', () => import('./byok/bucket/cors.js')),
          command('check', 'try what uploads need of the bucket', () => import('./byok/bucket/check.js')),
        ],
      },
    ],
  },
  {
    name: 'webhook',
    summary: 'webhooks: tell other services about changes of documents',
    examples: [
      'bsvc webhook add --project shop --url https://example.com/hooks --events posts.insert',
      'bsvc webhook list --project shop',
      'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed',
    ],
    commands: [
      command('add', 'register a webhook, its secret is shown once', () => import('./webhook/add.js')),
      command('list', 'list webhooks', () => import('./webhook/list.js')),
      command('edit', 'change address or events, enable, disable', () => import('./webhook/edit.js')),
      command('remove', 'remove a webhook', () => import('./webhook/remove.js')),
      command('test', 'send test.ping and show the answer', () => import('./webhook/test.js')),
      command('deliveries', 'list deliveries and attempts', () => import('./webhook/deliveries.js')),
      command('replay', 'send a delivery again', () => import('./webhook/replay.js')),
      command(
        'rotate-secret',
        'give a webhook a new secret, with an overlap',
        () => import('./webhook/rotate-secret.js'),
      ),
    ],
  },
  {
    name: 'operator',
    summary: 'dashboard users, for /api/projects/…',
    examples: [
      'bsvc operator add --email ann@example.com --role viewer',
      'bsvc operator list',
      'bsvc operator token ann@example.com --quiet',
    ],
    commands: [
      command('add', 'add an operator with a password', () => import('./operator/add.js')),
      command('list', 'list operators', () => import('./operator/list.js')),
      command('token', 'give out a bearer token, shown once', () => import('./operator/token.js')),
      command(
        'set-password',
        'set a new password, all sessions and tokens end',
        () => import('./operator/set-password.js'),
      ),
      command('sessions', 'list or end the sessions and tokens of an operator', () => import('./operator/sessions.js')),
      command('remove', 'remove an operator, its tokens end', () => import('./operator/remove.js')),
    ],
  },
  {
    name: 'file',
    summary: 'files that applications have uploaded',
    examples: ['bsvc file list --project shop'],
    commands: [
      command('list', 'list files', () => import('./file/list.js')),
      command('delete', 'delete a file', () => import('./file/delete.js')),
    ],
  },
  command('console', 'make a link that signs an operator in at the console', () => import('./console.js')),
  {
    name: 'jobs',
    summary: 'background jobs: what waits, runs and failed',
    examples: ['bsvc jobs list --state dead', 'bsvc jobs retry --dead', 'bsvc jobs purge --older-than 7d --yes'],
    commands: [
      command('list', 'list jobs', () => import('./jobs/list.js')),
      command('retry', 'make dead jobs due again', () => import('./jobs/retry.js')),
      command('purge', 'remove dead jobs', () => import('./jobs/purge.js')),
    ],
  },
  command('apply', 'make projects as one file declares them', () => import('./apply.js')),
  {
    name: 'secrets',
    summary: 'the key that seals stored secrets, and those that sign tokens',
    examples: ['bsvc secrets rotate', 'bsvc secrets rotate-tokens --project shop'],
    commands: [
      command('rotate', 'seal stored secrets with a new key', () => import('./secrets/rotate.js')),
      command(
        'rotate-tokens',
        'sign access tokens of a project with a new secret',
        () => import('./secrets/rotate-tokens.js'),
      ),
    ],
  },
  {
    name: 'service',
    summary: 'run bsvc as a service of the system',
    examples: ['bsvc service install --print', 'bsvc service install --worker'],
    commands: [command('install', 'write systemd units for the server', () => import('./service/install.js'))],
  },
  {
    name: 'backup',
    summary: 'backups of everything stored, while serving',
    examples: ['bsvc backup', 'bsvc backup --to s3://backups/shop', 'bsvc backup list'],
    fallback: 'make',
    commands: [
      command('make', 'write everything stored into one file', () => import('./backup/make.js')),
      command('list', 'list the backups of a place', () => import('./backup/list.js')),
    ],
  },
  command('restore', 'make the store what a backup holds', () => import('./restore.js')),
  command('move-to', 'copy an embedded store into a real MongoDB, verified', () => import('./move-to.js')),
  command('audit', 'list administrative acts', () => import('./audit.js')),
  command('completion', 'print a completion script for bash, zsh or fish', async () => ({
    default: (await import('./completion.js')).createCompletion(COMMANDS),
  })),
];
