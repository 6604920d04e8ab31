"""``uvicorn shop.web:app``: an order is a row, a job of the engine in the same transaction, and a mail."""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.orm import Session

from actors import engine
from actors.mails import confirm
from db.models import PrintJob
from shop.work import printing

app = FastAPI()


class Order(BaseModel):
    copies: int
    change_of_mind: bool = False


@app.post("/orders", status_code=201)
def order(wish: Order) -> dict[str, str | int]:
    with Session(engine) as session, session.begin():
        row = PrintJob(project_id=1, copies=wish.copies)
        session.add(row)
        session.flush()
        job = printing.submit({"print_job": row.id}, session=session)
        if wish.change_of_mind:
            raise HTTPException(409, "the customer went away")
        number = row.id
    confirm.send(f"order {number}")
    return {"order": number, "job": str(job.id)}


@app.get("/report")
def report() -> str:
    with engine.connect() as connection:
        return str(connection.execute(text("SELECT pipeline_report()")).scalar_one())
