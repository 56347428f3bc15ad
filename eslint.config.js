import tseslint from 'typescript-eslint';

const PRODUCT = ['src/**/*.ts', 'src/**/*.tsx', 'cli/**/*.ts'];

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'coverage/', 'bsvc-data/'] },
  ...tseslint.configs.strict,
  { files: PRODUCT, extends: [tseslint.configs.strictTypeChecked] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // One style of imports: `import type` for types alone, `type` before the name beside values.
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      // With `noUncheckedIndexedAccess` every place in a list may be undefined: `!` says that its length was looked at.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Documents are plain objects whose fields are named by clients; a fresh copy loses a field in no other way.
      '@typescript-eslint/no-dynamic-delete': 'off',
      // A handler may end without a result: `Promise<RunAgain | void>` asks for no `return` where there is none.
      '@typescript-eslint/no-invalid-void-type': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    // Prettier wraps code, but no comments.
    rules: { 'max-len': ['error', { code: 10_000, comments: 120, ignoreUrls: true }] },
  },
  {
    files: PRODUCT,
    rules: {
      '@typescript-eslint/no-import-type-side-effects': 'error',
      // A body without braces stands on the line of its `if`, or there are braces (decision 1603).
      curly: ['error', 'multi-line', 'consistent'],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // A property that a call in between has changed looks constant to it; values from outside are guarded on purpose.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // Values of the engine are known by their tag, not by the constructor that made them.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // A look-up names the type of what was stored under the key, which no argument tells.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      // `async () => void (await …)` drops a result that the signature does not have; the rule takes it for nothing.
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/only-throw-error': ['error', { allowRethrowing: true, allowThrowingUnknown: true }],
      '@typescript-eslint/no-deprecated': [
        'error',
        {
          allow: [
            // Marked only to stand out: plain http, for an issuer on this machine alone.
            { from: 'package', package: 'openid-client', name: 'allowInsecureRequests' },
          ],
        },
      ],
      // Texts are spread on purpose: into characters instead of UTF-16 units.
      '@typescript-eslint/no-misused-spread': ['error', { allow: ['string'] }],
      'no-restricted-syntax': [
        'error',
        {
          selector: 'TSAsExpression > TSNeverKeyword',
          message: 'A cast to never overrules every check: mend the type.',
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    // Koa's callback gives a promise to a server that does not wait for it.
    rules: { '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }] },
  },
  {
    files: ['bin/*.js'],
    // Node starts a CommonJS script without its loader of modules: every command 6 ms sooner.
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['src/client/**'],
    rules: {
      // Inside, documents are of no type; at its borders they become those of the project that the caller names.
      'no-restricted-syntax': 'off',
      // A project's types may have no field of a kind.
      '@typescript-eslint/no-generated-empty-object-type': 'off',
    },
  },
  {
    // The contract names the provider's audiences, which it calls segments since.
    files: ['src/features/mail/audiences.ts'],
    rules: { '@typescript-eslint/no-deprecated': 'off' },
  },
);
