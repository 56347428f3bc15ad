import type { CommandNode } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

/** Every command of bsvc. Modules are imported when they run, so that `bsvc --help` starts at once. */
export const COMMANDS: readonly CommandNode[] = [
  { name: 'serve', summary: 'run the API server, with the background worker inside', load: () => import('./serve.js') },
  { name: 'worker', summary: 'run background jobs and schedules only', load: () => import('./worker.js') },
  {
    name: 'doctor',
    summary: 'check settings, storage and dependencies, and say what to do',
    load: () => import('./doctor.js'),
  },
  {
    name: 'settings',
    summary: 'list every setting, its value and where it came from',
    load: () => import('./settings.js'),
  },
  {
    name: 'migrate',
    summary: 'bring stored data up to this version',
    examples: ['bsvc migrate status', 'bsvc migrate', 'bsvc migrate up --dry-run'],
    fallback: 'up',
    commands: [
      { name: 'up', summary: 'run pending migrations', load: () => import('./migrate/up.js') },
      { name: 'status', summary: 'list applied and pending migrations', load: () => import('./migrate/status.js') },
    ],
  },
  {
    name: 'project',
    summary: 'projects: one per application',
    examples: ['bsvc project create shop', 'bsvc project list', 'bsvc project update shop --plan pro'],
    commands: [
      { name: 'create', summary: 'create a project with its first keys', load: () => import('./project/create.js') },
      { name: 'list', summary: 'list projects', load: () => import('./project/list.js') },
      { name: 'show', summary: 'show one project', load: () => import('./project/show.js') },
      {
        name: 'update',
        summary: 'change name, plan, allowed domains or limits',
        load: () => import('./project/update.js'),
      },
      {
        name: 'export',
        summary: 'write the bsvc.yaml of a running project',
        load: () => import('./project/export.js'),
      },
      { name: 'delete', summary: 'delete a project and everything in it', load: () => import('./project/delete.js') },
      { name: 'usage', summary: 'show what a project uses of its limits', load: () => import('./project/usage.js') },
      {
        name: 'recount',
        summary: 'recount what counts towards the quotas',
        load: () => import('./project/recount.js'),
      },
    ],
  },
  {
    name: 'key',
    summary: 'API keys of a project',
    examples: ['bsvc key list --project shop', 'bsvc key rotate --project shop --type secret --grace 24h'],
    commands: [
      { name: 'list', summary: 'list keys by id and last characters', load: () => import('./key/list.js') },
      { name: 'create', summary: 'create a further key, shown once', load: () => import('./key/create.js') },
      { name: 'rotate', summary: 'create a new key and let the old ones end', load: () => import('./key/rotate.js') },
      { name: 'revoke', summary: 'end a key at once', load: () => import('./key/revoke.js') },
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
      { name: 'add', summary: 'register a collection', load: () => import('./collection/add.js') },
      { name: 'list', summary: 'list collections', load: () => import('./collection/list.js') },
      { name: 'show', summary: 'show fields and rules of a collection', load: () => import('./collection/show.js') },
      { name: 'edit', summary: 'add, change or drop fields', load: () => import('./collection/edit.js') },
      { name: 'rls', summary: 'set or switch off row-level security', load: () => import('./collection/rls.js') },
      {
        name: 'changes',
        summary: 'keep changes for those who follow them, or not',
        load: () => import('./collection/changes.js'),
      },
      { name: 'rename', summary: 'rename a collection', load: () => import('./collection/rename.js') },
      { name: 'drop', summary: 'drop a collection and its documents', load: () => import('./collection/drop.js') },
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
      {
        name: 'export',
        summary: 'write the collections of a project as JSON',
        load: () => import('./schema/export.js'),
      },
      {
        name: 'apply',
        summary: 'make the collections of a project match a file',
        load: () => import('./schema/apply.js'),
      },
    ],
  },
  {
    name: 'types',
    summary: 'write the collections of a project as TypeScript types',
    load: () => import('./write-types.js'),
  },
  {
    name: 'openapi',
    summary: 'write the API document of one project',
    load: () => import('./openapi.js'),
  },
  {
    name: 'data',
    summary: 'documents: bulk import, export, queries',
    examples: [
      'bsvc data import posts posts.ndjson --project shop',
      'bsvc data query posts --project shop --filter status=live --limit 5',
    ],
    commands: [
      { name: 'import', summary: 'import documents from NDJSON, JSON or CSV', load: () => import('./data/import.js') },
      { name: 'export', summary: 'export documents as NDJSON, JSON or CSV', load: () => import('./data/export.js') },
      { name: 'query', summary: 'list documents', load: () => import('./data/query.js') },
      { name: 'watch', summary: 'follow the changes of a collection', load: () => import('./data/watch.js') },
      { name: 'get', summary: 'show one document', load: () => import('./data/get.js') },
      { name: 'aggregate', summary: 'run an aggregation pipeline', load: () => import('./data/aggregate.js') },
      { name: 'insert', summary: 'store one document', load: () => import('./data/insert.js') },
      { name: 'change', summary: 'change fields of a document', load: () => import('./data/change.js') },
      { name: 'trash', summary: 'move a document to the trash', load: () => import('./data/trash.js') },
      { name: 'recover', summary: 'take a document back from the trash', load: () => import('./data/recover.js') },
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
      { name: 'list', summary: 'list users', load: () => import('./user/list.js') },
      { name: 'create', summary: 'create an account', load: () => import('./user/create.js') },
      { name: 'set-password', summary: 'give a user another password', load: () => import('./user/set-password.js') },
      { name: 'disable', summary: 'close an account', load: () => import('./user/disable.js') },
      { name: 'enable', summary: 'open a closed account again', load: () => import('./user/enable.js') },
      {
        name: 'identities',
        summary: 'list the identities at sign-in providers that open an account',
        load: () => import('./user/identities.js'),
      },
      { name: 'sessions', summary: 'show or end where a user is signed in', load: () => import('./user/sessions.js') },
      { name: 'delete', summary: 'delete an account', load: () => import('./user/delete.js') },
      {
        name: 'social',
        summary: 'sign-in through Google, GitHub or another provider',
        examples: ['bsvc user social list --project shop', 'bsvc user social remove github --project shop'],
        commands: [
          { name: 'list', summary: 'list providers', load: () => import('./user/social/list.js') },
          { name: 'set', summary: 'add a provider or change it', load: () => import('./user/social/set.js') },
          { name: 'remove', summary: 'remove a provider', load: () => import('./user/social/remove.js') },
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
      { name: 'test', summary: 'send a test mail', load: () => import('./mail/test.js') },
      { name: 'logs', summary: 'list the latest mails', load: () => import('./mail/logs.js') },
      { name: 'outbox', summary: 'show mails that were kept instead of sent', load: () => import('./mail/outbox.js') },
      {
        name: 'template',
        summary: 'templates of a project',
        examples: ['bsvc mail template set welcome --project shop --subject "Hello {{name}}" --text welcome.txt'],
        commands: [
          { name: 'list', summary: 'list templates', load: () => import('./mail/template/list.js') },
          { name: 'show', summary: 'show one template', load: () => import('./mail/template/show.js') },
          { name: 'set', summary: 'store or replace a template', load: () => import('./mail/template/set.js') },
          {
            name: 'remove',
            summary: 'remove a template of the project',
            load: () => import('./mail/template/remove.js'),
          },
        ],
      },
    ],
  },
  {
    name: 'byok',
    summary: 'a project’s own provider accounts',
    examples: ['bsvc byok set --project shop --mail-key-stdin < key.txt', 'bsvc byok show --project shop'],
    commands: [
      { name: 'set', summary: 'store the project’s own mail provider key', load: () => import('./byok/set.js') },
      {
        name: 'webhook-secret',
        summary: 'store the secret of the provider’s events',
        load: () => import('./byok/webhook-secret.js'),
      },
      { name: 'show', summary: 'show what is set, masked', load: () => import('./byok/show.js') },
      { name: 'clear', summary: 'forget the key', load: () => import('./byok/clear.js') },
      {
        name: 'bucket',
        summary: 'a project’s own bucket for files',
        examples: ['bsvc byok bucket show --project shop', 'bsvc byok bucket check --project shop'],
        commands: [
          {
            name: 'set',
            summary: 'make new files go to the project’s own bucket',
            load: () => import('./byok/bucket/set.js'),
          },
          { name: 'show', summary: 'show the bucket, masked', load: () => import('./byok/bucket/show.js') },
          { name: 'clear', summary: 'stop using the bucket', load: () => import('./byok/bucket/clear.js') },
          { name: 'cors', summary: 'let browsers upload to the bucket', load: () => import('./byok/bucket/cors.js') },
          {
            name: 'check',
            summary: 'try what uploads need of the bucket',
            load: () => import('./byok/bucket/check.js'),
          },
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
      { name: 'add', summary: 'register a webhook, its secret is shown once', load: () => import('./webhook/add.js') },
      { name: 'list', summary: 'list webhooks', load: () => import('./webhook/list.js') },
      { name: 'edit', summary: 'change address or events, enable, disable', load: () => import('./webhook/edit.js') },
      { name: 'remove', summary: 'remove a webhook', load: () => import('./webhook/remove.js') },
      { name: 'test', summary: 'send test.ping and show the answer', load: () => import('./webhook/test.js') },
      { name: 'deliveries', summary: 'list deliveries and attempts', load: () => import('./webhook/deliveries.js') },
      { name: 'replay', summary: 'send a delivery again', load: () => import('./webhook/replay.js') },
      {
        name: 'rotate-secret',
        summary: 'give a webhook a new secret, with an overlap',
        load: () => import('./webhook/rotate-secret.js'),
      },
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
      { name: 'add', summary: 'add an operator with a password', load: () => import('./operator/add.js') },
      { name: 'list', summary: 'list operators', load: () => import('./operator/list.js') },
      { name: 'token', summary: 'give out a bearer token, shown once', load: () => import('./operator/token.js') },
      {
        name: 'set-password',
        summary: 'set a new password, all sessions and tokens end',
        load: () => import('./operator/set-password.js'),
      },
      {
        name: 'sessions',
        summary: 'list or end the sessions and tokens of an operator',
        load: () => import('./operator/sessions.js'),
      },
      { name: 'remove', summary: 'remove an operator, its tokens end', load: () => import('./operator/remove.js') },
    ],
  },
  {
    name: 'file',
    summary: 'files that applications have uploaded',
    examples: ['bsvc file list --project shop'],
    commands: [
      { name: 'list', summary: 'list files', load: () => import('./file/list.js') },
      { name: 'delete', summary: 'delete a file', load: () => import('./file/delete.js') },
    ],
  },
  {
    name: 'console',
    summary: 'make a link that signs an operator in at the console',
    load: () => import('./console.js'),
  },
  {
    name: 'jobs',
    summary: 'background jobs: what waits, runs and failed',
    examples: ['bsvc jobs list --state dead', 'bsvc jobs retry --dead', 'bsvc jobs purge --older-than 7d --yes'],
    commands: [
      { name: 'list', summary: 'list jobs', load: () => import('./jobs/list.js') },
      { name: 'retry', summary: 'make dead jobs due again', load: () => import('./jobs/retry.js') },
      { name: 'purge', summary: 'remove dead jobs', load: () => import('./jobs/purge.js') },
    ],
  },
  {
    name: 'apply',
    summary: 'make projects as one file declares them',
    load: () => import('./apply.js'),
  },
  {
    name: 'secrets',
    summary: 'the key that seals stored secrets, and those that sign tokens',
    examples: ['bsvc secrets rotate', 'bsvc secrets rotate-tokens --project shop'],
    commands: [
      { name: 'rotate', summary: 'seal stored secrets with a new key', load: () => import('./secrets/rotate.js') },
      {
        name: 'rotate-tokens',
        summary: 'sign access tokens of a project with a new secret',
        load: () => import('./secrets/rotate-tokens.js'),
      },
    ],
  },
  {
    name: 'service',
    summary: 'run bsvc as a service of the system',
    examples: ['bsvc service install --print', 'bsvc service install --worker'],
    commands: [
      { name: 'install', summary: 'write systemd units for the server', load: () => import('./service/install.js') },
    ],
  },
  {
    name: 'backup',
    summary: 'backups of everything stored, while serving',
    examples: ['bsvc backup', 'bsvc backup --to s3://backups/shop', 'bsvc backup list'],
    fallback: 'make',
    commands: [
      { name: 'make', summary: 'write everything stored into one file', load: () => import('./backup/make.js') },
      { name: 'list', summary: 'list the backups of a place', load: () => import('./backup/list.js') },
    ],
  },
  { name: 'restore', summary: 'make the store what a backup holds', load: () => import('./restore.js') },
  {
    name: 'move-to',
    summary: 'copy an embedded store into a real MongoDB, verified',
    load: () => import('./move-to.js'),
  },
  { name: 'audit', summary: 'list administrative acts', load: () => import('./audit.js') },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    load: async () => ({ default: (await import('./completion.js')).createCompletion(COMMANDS) }),
  },
];
