import { describe, expect, expectTypeOf, it } from 'vitest';
import { below, pathTo, withQuery, type AskedOf, type DataOf } from '../../../src/console/api-paths.js';

const project = pathTo('/api/projects/{projectId}', { projectId: '64b0c0ffee0000000000beef' });

describe('an address of the console', () => {
  it('is a path with its parameters filled in and encoded', () => {
    const template = below(project, '/mail/templates/{name}', { name: 'über/uns?' });
    expect(template).toBe('/api/projects/64b0c0ffee0000000000beef/mail/templates/%C3%BCber%2Funs%3F');
    expect(below(template, '/preview')).toBe(`${template}/preview`);
  });

  it('leaves out of a query what is empty, and keeps what is given twice', () => {
    expect(withQuery(below(project, '/users'), { email: '', q: 'a b', page: null })).toBe(`${project}/users?q=a+b`);
    const documents = below(project, '/collections/{collection}/documents', { collection: 'posts' });
    const twice = new URLSearchParams('views_gt=1&views_gt=2');
    expect(withQuery(documents, twice)).toBe(`${documents}?views_gt=1&views_gt=2`);
  });

  it('is of a route that there is, with the names of its parameters and of its query', () => {
    // @ts-expect-error -- no such route
    pathTo('/api/project');
    // @ts-expect-error -- no such route below
    below(project, '/user');
    // @ts-expect-error -- it is named projectId
    pathTo('/api/projects/{projectId}', { project: 'a' });
    // @ts-expect-error -- it is left out
    pathTo('/api/projects/{projectId}');
    // @ts-expect-error -- the parameter is q
    withQuery(below(project, '/users'), { search: 'ada' });
    // @ts-expect-error -- the route takes none
    withQuery(project, { q: 'ada' });
  });

  it('says what its routes take and answer', () => {
    type Keys = '/api/projects/{projectId}/keys';
    expectTypeOf<AskedOf<'POST', Keys>['body']['type']>().toEqualTypeOf<'publishable' | 'secret'>();
    expectTypeOf<DataOf<'POST', Keys>['value']>().toEqualTypeOf<string>();
    expectTypeOf<DataOf<'GET', Keys>['items'][number]>().toHaveProperty('last4');
    expectTypeOf<DataOf<'GET', Keys>['items'][number]>().not.toHaveProperty('value');
    expectTypeOf<DataOf<'POST', '/api/admin/logout'>>().toEqualTypeOf<undefined>();
  });
});
