/** Calls that the types of the document do not allow. The compiler reports a line that it finds nothing wrong with. */
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({ baseUrl: "/" });

export const refused = [
  // @ts-expect-error the payload of a claim has more members, and another commitment
  () => client.POST("/api/v1/claims", { body: { payload: { commitment_alg: "sha256" } } }),
  // @ts-expect-error ids are numbers
  () => client.GET("/api/v1/log/{entry_id}", { params: { path: { entry_id: "head" } } }),
  // @ts-expect-error the log has no such method
  () => client.DELETE("/api/v1/log"),
  // @ts-expect-error the query has no such parameter
  () => client.GET("/api/v1/log", { params: { query: { size: 1 } } }),
  // @ts-expect-error a registration needs a body
  () => client.POST("/api/v1/keys/register"),
  // @ts-expect-error an answer to HEAD has no body
  async () => (await client.HEAD("/api/v1/log/head")).data?.entry_count,
];
